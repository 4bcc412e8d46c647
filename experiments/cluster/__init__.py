"""The same commands on several workers: what is to be done, who does it (Ray), and how it stands."""
