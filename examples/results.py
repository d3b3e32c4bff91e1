"""A cyclic test of a steel and stretched crystals: run, save, read back, draw, report.

Writes `out/results*` beside this file, or under the folder that is named.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from ingot import Result, build_driver, read, read_result
from ingot.cli.main import status
from ingot.drivers import TransientDriver
from ingot.drivers.charts import draw
from ingot.drivers.poles import find_pole_figures

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Make the pictures of docs/results.md."""
    folder.mkdir(parents=True, exist_ok=True)
    steel = run("cyclic.i", "cyclic")
    steel.save(folder / "results.npz")
    print(read_result(folder / "results.npz"))
    shown = ("strain.xx:stress.xx", "back_stress_1.xx,back_stress_2.xx", "iterations")
    steel.plot(*shown).savefig(folder / "results.png", dpi=90)

    crystals = run("crystal.i", "stretch", "crystals:=300", "steps:=1200", "end:=600")
    poles = find_pole_figures(crystals, (1, 1, 1))
    draw(poles).savefig(folder / "results_poles.png", dpi=90)

    page = folder / "results.html"
    assert status(["report", str(HERE / "cyclic.i"), "--output", str(page)]) == 0
    photograph(page, folder / "results_report.png")


def run(file: str, name: str, *overrides: str) -> Result:
    """The result of a driver of an example."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    driver = build_driver(read(HERE / file, overrides), name)
    assert isinstance(driver, TransientDriver)
    return driver.run("kernel" if compiler else "interpret")


def photograph(page: Path, picture: Path) -> None:
    """A picture of a page, where a browser is installed."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no chromium is installed, so that the page is not photographed")
        return
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    profile = f"--user-data-dir={picture.parent / 'profile'}"
    sized = ["--window-size=1100,860", "--virtual-time-budget=3000", f"--screenshot={picture}"]
    command = [browser, *flags, profile, *sized, page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    shutil.rmtree(picture.parent / "profile", ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
