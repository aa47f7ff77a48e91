"""What English-speaking models write when they refuse: regular expressions for texts with single spaces.

People are unable to do things too: "I'm sorry, but I can't find my card", "I can't provide my medical records". A
refusal differs in what it refuses: to help, or to make texts, and never texts of the writer's own.
"""


def _any(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


_UNABLE = _any(
    r"can't|cannot|can not|won't|will not|wouldn't|shouldn't|should not|may not|unable to|not able to",
    r"not (?:allowed|permitted|authori[sz]ed|supposed|programmed|designed|equipped|going|willing|prepared) to",
    r"must decline to|(?:respectfully )?(?:decline|refuse)(?: to)?|(?:prefer|rather) not(?: to)?",
    r"(?:(?:must|should) )?refrain from|must avoid|(?:prohibited|prevented) from",
    r"(?:do not|don't) feel comfortable(?: with| to)?|not (?:\w+ )?comfortable(?: with)?",
    r"(?:do not|don't) think (?:that )?(?:i|we) (?:should|can)",
    r"(?:have no|(?:do not|don't|lack) (?:have )?the) (?:ability|capability|capacity|authority) to",
)
_BEFORE_UNABLE = (
    r"(?:i|we)(?: am|'m| are|'re)?(?: afraid(?: that)? (?:i|we))?"
    r"(?: really| simply| just| still| also| therefore| currently| unfortunately)?"
    r"(?: am|'m| are|'re| would|'d| will|'ll)?(?: going to)?(?: must| have to| need to)?"
)
_NOT_RIGHT = _any(
    r"(?:'s| is| would be|'d be) (?:not (?:\w+ )?|in|un|im)(?:appropriate|ethical|possible|right|permitted)",
    r" (?:isn't|wouldn't be) (?:appropriate|ethical|possible|right)",
)
INABILITY = rf"(?:{_BEFORE_UNABLE} {_UNABLE}|it{_NOT_RIGHT}(?: for me)? to)(?: \w+ly| in good conscience)?"
"""What a refusal begins with, after any apology."""

HELP = _any(
    r"assist(?: you)? (?:with|in|further|on)\b|help you\b|help (?:with|in|on) (?:that|this|your|these|those|such)\b",
    r"(?:assist|help|fulfil?l?|comply)(?: here)?(?:[.!]|\W*$)",
    r"(?:comply with|fulfil?l?) (?:that\b|(?:your|this|that|the|such|these) (?:\w+ )?requests?\b)",
    r"(?:continue|proceed|engage) with (?:this|that|your)(?: (?:request|prompt|task|conversation))?\W*$",
    r"(?:do|provid|generat|creat|writ|produc|continu|complet|discuss|answer)(?:e|ing)? (?:that|this|so|these|those)"
    r"(?: (?:one|information|text|note|message|record|request))?\W*$",
)
"""What the model is unable to do, according to the first words of a text."""

_MAKE = _any(
    r"(?:creat|generat|writ|provid|produc|compos|fabricat|simulat|continu|complet|shar|giv|mak|compil|rephras)(?:e|ing)",
    r"(?:paraphras|prepar|disclos|imagin)(?:e|ing)|(?:rewrit|com)(?:e|ing)(?: up with)?|mak(?:e|ing) up|draft(?:ing)?",
    r"invent(?:ing)?|fill(?:ing)? in|offer(?:ing)?|role-?play(?:ing)?|answer(?:ing)?|output(?:ting)?|fulfil?l?(?:ing)?",
    r"process(?:ing)?|respond(?:ing)? to|engag(?:e|ing) in|participat(?:e|ing) in|discuss(?:ing)?|and|or",
    r"(?:assist|help)(?:ing)?(?: you)?(?: with| in| to)?",
)
_MAKE_ANEW = r"(?:creat|generat|produc|compos|fabricat|simulat)(?:e|ing)"
_OF_PATIENTS = r"(?:(?:real|medical|clinical|patient|health|nursing|hospital|customer|consumer|user)s?(?:'s?)? )"
_TEXT_OF_PATIENTS = _any(
    r"records?|notes?|data|summar(?:y|ies)|reports?|messages?|questions?|quer(?:y|ies)|complaints?|reviews?",
    r"conversations?|documents?|vignettes?|cases?",
)
_TEXT = _any(
    r"(?:content|texts?|prompts?|variations?|paraphrases?|rewordings?|json|data ?sets?|narratives?|dialogues?)\b",
    r"(?:scenarios?|stories|examples|roleplay|new (?:version|message|note)s?|clinical documentation)\b",
    r"(?:fiction\w*|fictitious|synthetic|fake|fabricated|realistic|hypothetical|simulated|imaginary)\b",
    r"(?:fraudulent|harmful|abusive|offensive|explicit|misleading|deceptive|identifiable) \w+",
    r"(?:discharge|clinic|referral) (?:letter|summar(?:y|ies))s?\b",
    rf"{_OF_PATIENTS}{{1,4}}(?:\w+ )?{_TEXT_OF_PATIENTS}\b|(?:patient|customer)s?(?:'s?)? information\b",
    r"(?:medical|legal|financial|clinical) (?:advice|guidance|opinions?|diagnos\w+)",
    r"the (?:requested|specified)\b|such\b|what you(?:'ve| have|'re| are)? ask\w*",
    r"(?:your|this|that|the) (?:\w+ )?(?:requests?|prompts?|tasks?)(?=\W*$| as | for|[,;.] )",
    r"(?:messages|notes|complaints|questions|reviews|letters) (?:from|about|for|that|on|of|as|in|with|like)\b",
    r"(?:that|this|such|those|these|any|more|further) (?:\w+ )?(?:notes?|messages|complaints|questions|reviews)\b",
    r"note (?:for you|that|about|in|from|as)\b",
)
_WORDS = r"(?:(?!(?:my|our|his|her|their|him|them|me|us|it|enough)\b)[\w'/-]+,? ){0,5}?"
MAKING = _any(
    rf"(?:{_MAKE} ){{1,4}}{_WORDS}{_TEXT}",
    rf"{_MAKE_ANEW} {_WORDS}(?:notes?|messages)\b",
    r"writ(?:e|ing) about (?:this|that|such|these) (?:topic|subject|matter)s?\b",
)
"""The making of texts, which a model is unable to do according to any clause of a text."""

ASSISTANT = _any(
    r"\bas an? (?:responsible )?(?:ai|artificial intelligence|(?:large )?language model|chatbot)\b",
    r"\bi(?: am|'m) (?:just |only |merely )?an? (?:ai|artificial intelligence|(?:large )?language model|chatbot)\b",
    r"\bi(?: am|'m) (?:qwen|chatgpt|claude|gemini|deepseek|copilot)\b",
    r"\b(?:created|developed|trained) by (?:openai|alibaba|anthropic|google|meta|deepseek)\b",
    r"\b(?:violat\w+|against) (?:my|our|openai's|anthropic's|the) (?:\w+ )?(?:content|usage|safety|ethic\w*|community)"
    r"(?: and \w+)? (?:guidelines|polic(?:y|ies)|standards|principles)\b",
    r"\bagainst (?:my (?:\w+ )?(?:programming|guidelines)|ethical guidelines)\b",
    r"\bmy (?:\w+ )?(?:programming|guidelines|training data|instructions) (?:do|does|prevent|prohibit|forbid|restrict)",
    r"\bi (?:do not|don't) have (?:direct )?access to (?:any )?(?:real|actual|confidential|private)(?:-time)? ",
    r"\b(?:request|content|prompt) (?:can't|cannot) be (?:fulfilled|generated)",
    r"\bi (?:[\w']+ ){0,4}?declin(?:e|ing) (?:this|that|your|the) (?:request|prompt|task)\b",
    r"\bnot (?:\w+ )?comfortable with (?:this|that|your|such) (?:requests?|prompts?|tasks?|content)\b",
    r"\bnot something (?:that )?i (?:can|could|will|am able to|'m able to) (?:help|assist|write|create|generate)\b",
    r"\b(?:creat|generat|writ|produc|provid)ing (?:[\w'-]+ ){1,5}?is (?:not )?something (?:that )?i\b",
    r"\bno (?:\w+ ){0,2}?(?:notes|texts|messages|versions|content) can be (?:generated|created|produced|written)\b",
    r"\byour (?:request|prompt|input|instructions?) (?:is|are|seems?|appears?|was) (?:to be )?(?:incomplete|unclear)\b",
    r"^\W*(?:cannot|can't|unable to) (?:create|generate|produce|provide) (?:\w+ )?(?:content|requested|synthetic)\b",
    r"^\W*(?:let's|let me|we need to) (?:write|create|craft|generate|produce|draft|output)\b",
    r"^\W*(?:okay|ok|alright|hmm+|well|so|first)\W+(?:so\W+)?(?:the user\b|let me think\b|let's tackle\b)",
    r"^\W*the user (?:wants|is asking|asks|asked|has asked|requests|requested) (?:me|for|\d+)\b",
    r"\b(?:text|message|note|prompt|example)s? (?:that )?you(?:'d| would)? (?:like|want)(?: me)? to"
    r" (?:rewrite|rephrase|paraphrase|fill|continue|summari[sz]e)\b",
)
"""What only an assistant says, or thinks, about itself or its request, anywhere in a text."""

EMPTY = _any(
    r"sure|certainly|of course|absolutely|here (?:you (?:go|are)|(?:they|these) are|it is)|(?:i(?:'m| am) )?sorry",
    r"i(?:'d| would) be (?:happy|glad) to (?:help|assist)[^.!?\n]*+|i hope (?:this|these|that) helps?[^.!?\n]*+",
    r"(?:please )?let me know if you(?:'d| would)? (?:need|want|like) (?:(?:me to make )?"
    r"(?:any |some |more |other |further |additional |different )*(?:texts?|notes?|messages?|examples?|versions?"
    r"|variations?|changes|adjustments|modifications|more|anything else|assistance)"
    r"|me to (?:write|generate|adjust|revise|modify|change)[^.!?\n]*+)",
    r"(?:please )?feel free to (?:ask|adjust|modify|customi[sz]e|edit|change|use (?:this|these))[^.!?\n]*+",
    r"(?:hello|hi)(?: there)?|how (?:can|may) i (?:help|assist) you(?: today)?",
    r"(?:(?:please )?note|disclaimer)?\W{0,3}(?:that )?(?:this|these|all)(?: \w+){0,3} (?:is|are) (?:\w+ )?"
    r"(?:fictional|fictitious|made[- ]up|synthetic)[^.!?\n]*+",
)
"""What models say in place of a text, if there is nothing else."""
