"""Files, processes, commands and enrolment on one machine."""
