"""Make drawing/scenes/nearest.yaml: for words that no table of the sketch has, the nearest one that is drawn.

python -m training.pictograms.nearest > sketch/src/katha_sketch/drawing/scenes/nearest.yaml

A verb is the deed of a synonym, or of a wider verb; a noun is a pictogram's noun that means the same or the next wider
thing (a schooner is a sailing ship). Words for anything ("move", "tool") are no picture of a special one, and words in
`_UNFIT` get none.
"""

from __future__ import annotations

import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator

from katha_sketch.drawing.pictograms import find_noun
from katha_sketch.drawing.scenes.senses import deed_of_verb, place_of
from katha_sketch.english.words import load_words
from katha_sketch.matching.wordnet import wordnet

_SENSES, _STEPS, _STEP, _LATER = 3, 2, 1.5, 1.0
"""Senses of a word that count, steps upward, and what a step and a less usual sense cost."""
_FARTHEST = {"v": 1.6, "n": 2.0}
"""What a word may cost: for a verb its first sense and one step, for a noun a little more."""
_VERBS = """
be have do get make go come give take act move change keep hold put set let leave turn become stand live use need
want think know see feel look show stay begin start stop try work own belong travel remain consider change_state
cause express communicate interact touch connect control treat create produce remove exist appear happen
"""
_NOUNS = """
animal plant food drink tool container machine device thing person man woman child human people adult guest friend
worker building house vehicle clothing garment furniture object instrument toy card paper book letter picture body
leader member owner player author writer neighbour stranger customer boss fruit vegetable group head stick rock
equipment structure engine line sheet box bar board figure star heart leaf cell block plate piece note key
portion tit lodge slug crank combine larva learner loser poker castanets cuckoo dumbbell cape bark chip circuit swede
berth plough controller courier siamese trifle sole fuse lever handle sling float
"""
"""Words for anything, which are not taken for a special thing of their kind."""
_UNFIT = {
    "v": """
shin skin bewitch captivate charm delay entrance intern cog massage financier function lavish advocate proposition
recommend erode goose enlarge patter quench spew exit remount twig accede defer influence annihilate birth brook
enchant endure enthrall eradicate manage tolerate charter attain summit web wiretap achieve peg engage fowl haunt
rabbit whale balkanize lot paragraph gut parch paw refine roughen cascade deign surface wane wax peak impede obstruct
waterproof silence budge churn ready thaw unthaw census enumerate matter summate tot mouse hurrah keen creak squeak
curve disrupt plane reduce slaughter swerve trend veer circumcise grave azure gray grey mottle tinge drip trickle down
dispel metamorphose override overrule undo bone berate chide cream deplete exhaust lambaste lecture rebuke reprimand
crackle discipline educate distress inconvenience trouble sag harbor appropriate circumvent jar gas accommodate avail
dedicate devote misuse overuse suit chute coast disembark encircle flicker revolve skim snake vacillate wing beach
billow baa bail chorus cluck gargle grunt haw hoot loose low moo nasale parole quack rid snort utter whinny arbitrage
certificate dignify disclose divulge expose honor honour import impart instill interject legislate market muscle
overstep partake prostitute stage traffic transit undercut align attune bushel calibrate compensate conciliate eff
fuck jazz modernize recompense regulate seduce synchronize sync tune zero deal mismanage belabor beetle plaster
incline second indorse befog fog fawn skulk bankrupt bunker cannon dissect floor foul hole impress lumber outfight
outperform outplay outstrip reek single surmount trounce vanquish wallop worst babysit brooch cohere complement
comprehend counterbalance equilibrate mash offset persevere safeguard savvy squash telescope totter wall ward mislead
crab conn convoy maneuver result tree usher allay bosom ease encompass espouse solace beguile immerse spoon equalize
grass homer par reboot beak replicate smart thirst throb hunger hanker arc arch crook pink shine consist cap line sun
slant diffuse flank mantle crest disturb elate chin surge uplift advert accredit audit beware bilk bunco bunk case
chisel con deem defraud determine envy esteem gip glint insure jockey outface prize proctor reconsider rectify respect
retrospect rook scam shaft situate swindle tackle treasure welch whipsaw badger bait bug cod guy tantalize bare
blossom gap beautify grace panel landscape crimp dab fray itch neck quiet steady still thrill corrupt fee foot holiday
rely slum soldier summer vacation weekend winter prepay baptize ding dub echo name nickname peal rename resound
reverberate style term title accession chronicle document log register amass mobilize muster nut pearl bald institute
backstop overtake revoke rival vie improvise do malinger shirk slack augur bespeak bode comment criticise criticize
orient portend presage purport purpose target wisecrack overshoot farce disgorge clutter dot disperse swarm teem
attract browbeat coerce domineer exhort hale hector impel pressure railroad repel steamroller terrorize urge pole
alphabetize barrel bread butter canvas coordinate crease grade laden limber marshal middle mob oil outdistance paper
plug protrude rate recess ripple roof ruffle smother suffocate superimpose throng transcribe turf undulate withstand
broaden assimilate confer graze pasture relearn antique recycle bill border butterfly confine defect drain limit
recede throttle room essay commiserate pity compassionate prelude wreak pucker pad club combine compose concur conjoin
constitute converge correspond encounter federalize innovate league match merge pair tally unify wed remarry
degenerate worsen stable beef dictate direct dissent embolden endanger exact expire general imperil jeopardize mat
menace mew necessitate officer pipe prescribe require rumble thunder creak attest bracket certify pillory prop
underpin twinkle gloat tone induct submarine overcharge plume surcharge pirate stump bother lapse anoint benefit best
cadge compile consent degrade demean derive discern disgrace distinguish excerpt frequent gross incur level lump opt
outdo patronize preempt profit prolong recuperate source trump graduate orphan expropriate bay foster further gum
sentence shit spur swan fine abstract cabbage pilfer purloin govern gauge symbolize debar ban disband establish found
sky shed band berth deposit entrench ground grout fraction spam tick activate actuate begin commence continue cuckold
elapse enrol enroll err frustrate interfere overhaul participate police recruit scotch start stream thwart trigger
dawn deviate digress elute cancel expense reference remedy simulate imitate shade redress sub trademark attempt try
employ use utilize exploit implement resort reuse
""",
    "n": """
semiconductor poop droppings feces turd egg testicle backside behind buns buttocks derriere fanny rump stern calculus
goal destination laughingstock goofball jackass bonanza windfall chains irons honey beloved dear dearest punk mother
lingua vitals gland mug physiognomy visage cyberspace internet pouch condom till goner substance organs backer copycat
gringo deportee pullet wimp birthplace provenance judiciary fastener closer sucker patsy chump diver confessional
applesauce tripe skunk git calculator max cuprimine ag cadmium fe lucifer signet truncheon applicant
one extra heavy powerhouse bogy unknown sweetener clique coterie ingroup hoy shook female male young animal biped
critter seedbed cowling fore deadwood subdivision marc ling sable upper barilla coca kali outback actuary launcher pix
dame legume fraternity guild society sorority coating gilding gilt patina plating nucleus rookie sonny vandal viand
chichi bureau borer throwaway flier congregation dodger bod chassis chit lightweight timothy alexander angelica benny
pia sang sesame simple wort hobgoblin hoodlum thug tough horde tiddler gig cilium thong cusp eyelid spunk facing leo
forelock scavenger prater maria shooter matting monstrosity crude balm miniature nude monochrome tract superhighway
thruway mainstay hurler southpaw twirler cud mere outpost ticker ghetto profligate drifter nomad vagrant wanderer amir
emir caliph calif hakim inca basileus scorpio blinder turnkey lowlife puke horizon parasite spine ambler grinder
commutator oiler yearling john gunman gunslinger laggard straggler sender torso vanguard vas veteran veterinary
laundryman entanglement generic longer straight shaker browser anti user super feeler bruiser samson goliath colossus
johnny reb murphy cole billy buster dick belle bobby nan ma lem dak rex sis sens hops quirt unfortunate individual
modern mortal seeker brittle shoddy literate immune neutral national native creche mini brute
""",
}
"""Words for which what WordNet has beside them would be a wrong picture: worse than none."""
_SOLID = """
animal plant food drink vehicle building furniture tool container device toy instrument clothing sport document
person
"""


def near(pos: str, word: str, known: dict[str, list[tuple[int, str]]]) -> Iterator[tuple[float, str]]:
    """Yield known words near `word` with what they cost, for each sense and each step upward."""
    net = wordnet()
    for rank, sense in enumerate(net.senses[pos, word][:_SENSES]):
        level = {sense}
        for step in range(_STEPS + 1):
            for one in level:
                for own, other in known.get(one, ()):
                    yield _LATER * rank + _STEP * step + 0.4 * own, other
            level = {wider for one in level for wider in net.wider.get(one, ())}


def table(pos: str) -> dict[str, list[str]]:
    """Return the words of a part of speech by what stands for them."""
    net, known = wordnet(), defaultdict(list)
    drawn: dict[str, str] = {}
    general, solid = frozenset((_VERBS if pos == "v" else _NOUNS).split()), frozenset(_SOLID.split())
    for (part, word), senses in net.senses.items():
        spelt = word.replace("_", " ")
        if part != pos or word in general:
            continue
        noun = find_noun(spelt) if pos == "n" else None
        name = deed_of_verb(spelt) if pos == "v" else spelt if noun is not None and noun.kind in solid else None
        if name is not None and name != "stand":
            drawn[word] = name
            for rank, sense in enumerate(senses[:_SENSES]):
                known[sense].append((rank, word))
    found: dict[str, list[str]] = defaultdict(list)
    unfit = frozenset(_UNFIT[pos].split())
    for part, word in net.senses:
        spelt = word.replace("_", " ")
        if part != pos or word in drawn or "_" in word or word in unfit or (pos == "v" and deed_of_verb(spelt)):
            continue
        if pos == "n" and load_words().sort(word) in ("", "abstract", "place", "time", "event"):
            continue
        if pos == "n" and (find_noun(spelt) is not None or place_of(spelt) is not None or ("v", word) in net.senses):
            continue
        cost, other = min(near(pos, word, known), default=(99.0, ""))
        if cost <= _FARTHEST[pos]:
            found[drawn[other].replace(" ", "_")].append(word)
    return found


def main() -> None:
    """Write the table to standard output."""
    lines = [
        "# The nearest deed or drawn noun of words that no other table has, by WordNet 3.1 (Copyright 2011 by",
        "# Princeton University; its licence is katha/text/WORDNET_LICENSE). Made by training/pictograms/nearest.py.",
    ]
    for title, pos in (("verbs", "v"), ("nouns", "n")):
        lines.append(f"{title}:")
        for name, words in sorted(table(pos).items()):
            wrapped = textwrap.wrap(" ".join(sorted(words)), 112, break_on_hyphens=False)
            lines += [f"  {name!r}:", *(f"    {line}" for line in wrapped)]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
