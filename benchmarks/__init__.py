"""Speed and memory of whole commands, each as a ratio to a baseline measured in the same run."""
