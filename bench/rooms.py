"""`check-in` on a sound card in rooms: what an echo does to it, with and without a canceller, and how fast it is.

Each row is so many calls, one seed each: those that held all of the scenario's expectations, turns of the caller that
were the agent's own voice, how long the reply played on when the caller began, and the speed of one process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from callwright.apps import hotel
from callwright.measure.figures import CallFigures, measure_call
from callwright.measure.verdict import judge
from callwright.sim.agents import tools_of
from callwright.sim.line import LineKind, LineSettings
from callwright.sim.room import DRY, ROOMS, Aec, Noise, RoomSettings
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.world import play

CHECK_IN = Path(hotel.__file__).parent / "scenarios" / "check-in.yaml"
ECHOES = (0.05, 0.15, 0.3, 0.5)


def rooms(on: Aec) -> Iterator[RoomSettings]:
    """What is played, in the order of the table; ``on`` is the canceller."""
    yield RoomSettings()
    yield RoomSettings(aec=on)
    for echo in ECHOES:
        yield RoomSettings(echo=echo, aec=Aec.OFF)
        yield RoomSettings(echo=echo, aec=on)
    for name in ROOMS:
        if name != DRY:
            yield RoomSettings(name, echo=0.3, aec=on)
    for noise in ("street:-40", "babble:-50", "music:-45", "coughs:-50"):
        yield RoomSettings("living-room", echo=0.3, aec=on, noise=Noise.parse(noise))


def row(scenario: Scenario, room: RoomSettings, runs: int) -> str:
    """The figures of one room."""
    found: list[CallFigures] = []
    held, audio_s, cpu_s = 0, 0.0, 0.0
    for seed in range(1, runs + 1):
        begun_s = time.process_time()
        record = play(replace(scenario, room=room), seed)
        cpu_s += time.process_time() - begun_s
        audio_s += record.ended_ms / 1000
        found.append(measure_call(record, scenario.lines))
        held += not judge(found[-1], scenario.expect).failed and not found[-1].void
    yields = [latency for figures in found for latency in figures.values.get("yield_latency_ms", ())]
    own = sum(sum(figures.values.get("own_voice_as_caller", ())) for figures in found)
    aec = "off" if room.aec is Aec.AUTO else room.aec.value
    stops = f"{median(yields):.0f} ms" if yields else "-"
    noise = room.noise or "-"
    cells = (room.name, f"{room.echo:.2f}", noise, aec, f"{held} of {runs}", own, stops, f"{audio_s / cpu_s:.0f}")
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="calls of each row (5)")
    parser.add_argument("--aec", choices=("on", "aec3"), default="on", help="the canceller: ours, or WebRTC's (ours)")
    given = parser.parse_args()
    speaker = replace(load_scenario(CHECK_IN, tools_of), line=LineSettings(LineKind.SPEAKER))
    print("| room | echo | noise | canceller | held | own voice as caller | reply stops after | times real time |")
    print("|---|---|---|---|---|---|---|---|")
    for room in rooms(Aec(given.aec)):
        print(row(speaker, room, given.runs), flush=True)


if __name__ == "__main__":
    main()
