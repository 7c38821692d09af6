"""What client-go and kubectl's drain library do, release by release."""
