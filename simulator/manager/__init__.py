"""driver-manager itself: its steps, what each release changed, the releases, the what-ifs."""
