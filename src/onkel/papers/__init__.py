"""Papers: their tables and figures as protocols, run again and compared with the printed numbers."""
