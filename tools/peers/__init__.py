"""What the benchmark times, each in a process of its own: this project and its peers."""
