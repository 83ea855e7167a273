"""Function words: what a query leaves out, and what tells one European language from another.

Data only. The words are written as they stand after case folding, accents included.
"""

from __future__ import annotations

_ENGLISH = """
a about above after again against all am an and any are aren't as at be because been before being below
between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each
few for from further had hadn't has hasn't have haven't having he her here hers herself him himself his how
i if in into is isn't it its itself let's me more most mustn't my myself no nor not of off on once only or
other ought our ours ourselves out over own same shan't she should shouldn't so some such than that the
their theirs them themselves then there these they this those through to too under until up very was wasn't
we were weren't what when where which while who whom why will with won't would wouldn't you your yours
yourself yourselves i'm you're he's she's it's we're they're i've you've we've they've i'd you'd he'd she'd
we'd they'd i'll you'll he'll she'll we'll they'll that's who's what's here's there's when's where's why's
how's
"""

_GERMAN = """
aber als also am an auch auf aus bei bin bis bist da damit dann das dass dein dem den der des dich die dies
diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch
für gegen hat hatte hier hinter ich ihm ihn ihnen ihr ihre im in ist ja jede jeder jedes kann kein keine
können man mein mich mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein seine sich sie sind
so soll über um und uns unser unter viel vom von vor war waren warum was weil wenn wer werden wie wieder
wir wird wo zu zum zur zwischen
"""

_FRENCH = """
à ai au aussi aux avec avoir bien c ce ces cet cette ceux chez comme comment d dans de des donc dont du elle
elles en entre est et été être eu eux fait il ils j je l la le les leur leurs lui m ma mais me même mes moi
mon n ne nos notre nous on ont ou où par pas peut plus pour pourquoi qu quand que quel quelle qui s sa sans
se ses si son sont sous sur ta te tes toi ton tous tout toute tu un une vos votre vous y
"""

_SPANISH = """
a al algo ante antes como cómo con contra cual cuál cuando cuándo de del desde donde dónde durante e el él
ella ellas ellos en entre era es esa ese eso esta está este esto están fue ha han hasta hay la las le les lo
los más me mi mis mucho muy no nos o otra otro para pero por porque puede que qué quien quién se ser si sí
sin sobre son su sus también te tiene todo todos tu tú un una uno unos y ya yo
"""

_ITALIAN = """
a ad ai al alla alle allo anche c che chi ci come con contro cosa cui da dai dal dalla dalle dei del della
delle dello di dove e è ed era essere fra gli ha hanno ho i il in io l la le lei li lo loro lui ma mi mia mio
ne nei nel nella nelle noi non nostro o ogni per perché più può quale quando quella quello questa questo qui
se si sia sono su sua suo sul sulla tra tu tutti tutto un una uno vi voi
"""

_PORTUGUESE = """
a ao aos as às até com como contra da das de dela dele do dos e é ela elas ele eles em entre era essa esse
esta está este eu foi há isso isto já lhe mais mas me mesmo meu minha muito na não nas nem no nos nossa nosso
num numa o onde os ou para pela pelas pelo pelos por porque qual quando que quem são se sem ser seu seus só
sobre sua suas também te tem um uma você vocês
"""

_DUTCH = """
aan al alles als altijd bij daar dan dat de der deze die dit doch doen door dus een en er ge geen had heb
hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je kan kunnen maar me meer men met mij mijn
moet na naar niet niets nog nu of om omdat onder ons ook op over te tegen toch toen tot u uit van veel voor
waar waarom wanneer was wat we wel werd wie wij wil worden wordt zal ze zich zij zijn zo zonder
"""

_SWEDISH = """
alla allt att av bara blir de dem den denna deras dess det detta dig din du där då efter ej eller en er ett
från för ha hade han hans har hon hur här i icke ingen inom inte jag ju kan man med mellan men mig min mot
mycket nu när någon något några och om oss på sedan sig sin sina ska skulle som så till under upp ut utan vad
var vara varför vem vi vid vilka vilken är åt över
"""

_RUSSIAN = """
а без более бы был была были было быть в вам вас во вот все всех вы где да для до его ее если есть еще же за
и из или им их к как какая какой когда которые который кто ли между меня мне может можно мы на над надо нас
не него нет ни них но о об однако он она они оно от очень по под почему при про с со так также такой там
тем то того тоже только том тот у уже хотя чего чем что чтобы это этого этой этот эти я
"""

# A Chinese text is indexed as pairs of characters, so only whole pairs can be left out, and only those that
# ask rather than mean something.
_CHINESE = """
什么 什麼 甚麼 怎么 怎麼 怎样 怎樣 如何 为何 為何 哪些 哪个 哪個 哪里 哪裡 是否 我们 我們 你们 你們 他们 他們
可以 请问 請問
"""

_JAPANESE = "です ます した して する こと これ それ この その から まで など という"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS: dict[str, frozenset[str]] = {
    "de": _words(_GERMAN),
    "en": _words(_ENGLISH),
    "es": _words(_SPANISH),
    "fr": _words(_FRENCH),
    "it": _words(_ITALIAN),
    "ja": _words(_JAPANESE),
    "nl": _words(_DUTCH),
    "pt": _words(_PORTUGUESE),
    "ru": _words(_RUSSIAN),
    "sv": _words(_SWEDISH),
    "zh": _words(_CHINESE),
}
