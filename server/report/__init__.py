"""The report of a run or a sweep: one page for people (`report.html`) and one file for programs (`report.json`).

    facts.py          all documents of a run folder (`server/documents`), and what follows from them: `report.json`
    quality.py        accuracies, micro F1 or distances of the texts, beside those of other sets of texts
    verdict.py        what these figures say: a judgement, short sentences, and their figures as bars with intervals
    labels.py         texts and records by label and by form
    samples.py        the texts that are shown
    figure_tables.py  all other figures as tables, with the direction that is better and references in separate columns
    votes.py          distribution of the noised votes
    weaknesses.py     what is weak about a run, and what to change
    ending.py         the last lines of a command that made a data set
    plots.py          layout of lines, bars and a map
    run_plots.py      the plots of one run
    write.py          rendering of templates into files
    tensorboard.py    the figures of each round as event files
    dataset_card.py   the card of a published data set; croissant.py: the same for programs
    english.yaml      the sentences of all of these
    templates/        the pages (of a run, of a sweep), pictures of plots, their parts, styles and script

Nothing is computed from records here: a page shows only the content of the run folder. A page loads nothing, and no
text on it can become markup.
"""
