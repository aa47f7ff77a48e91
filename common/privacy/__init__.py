"""Privacy mathematics: sensitivities, mechanisms, exact noise and its accounting."""
