import { describe, expect, it } from "vitest";
import type { OpenProblem, Sighting } from "../../../src/data/problems/problems.ts";
import type { ProblemKind } from "../../../src/event/problem.ts";
import { createTransitions } from "../../../src/maintenance/problems/transitions.ts";

const TIMING = { openAfterMs: 20, resolveAfterMs: 60 };
const SEEN: Sighting = {
  organizationId: "org",
  subject: "sub",
  about: {},
  figures: {},
  message: "",
  suggestedAction: "",
  kind: "handler_failing",
  level: "raised",
  severity: "error",
};
const NEAR: Sighting = { ...SEEN, level: "near" };
const OPEN: OpenProblem = { ...SEEN, id: "prob" };
const LOOKED: ReadonlySet<ProblemKind> = new Set(["handler_failing"]);

/**
 * Runs one check every ten ms with the given findings, and returns the result of each. `undefined` stands for a failed check.
 */
function look(seen: readonly (Sighting | "nothing" | undefined)[], open: readonly OpenProblem[] = []) {
  const decide = createTransitions(TIMING);
  let now = [...open];
  return seen.map((one, at) => {
    const { opened, resolved } = decide({
      kinds: one === undefined ? new Set() : LOOKED,
      sightings: typeof one === "object" ? [one] : [],
      open: now,
      nowMs: at * 10,
    });
    if (opened.length > 0) now = [OPEN];
    if (resolved.length > 0) now = [];
    return opened.length > 0 ? "opens" : resolved.length > 0 ? "ends" : "";
  });
}

const times = <const T>(count: number, one: T): readonly T[] => Array.from({ length: count }, () => one);

describe("a problem", () => {
  it("opens once every check has found it for at least openAfterMs milliseconds", () => {
    expect(look(times(4, SEEN))).toEqual(["", "", "opens", ""]);
    expect(look([SEEN, SEEN, "nothing", SEEN, SEEN, SEEN])).toEqual(["", "", "", "", "", "opens"]);
  });

  it("is resolved once no check has found it for at least resolveAfterMs milliseconds", () => {
    expect(look(times(8, "nothing"), [OPEN])).toEqual(["", "", "", "", "", "", "ends", ""]);
    const comesBack = ["nothing", ...times(4, "nothing"), SEEN, ...times(7, "nothing")] as const;
    expect(look(comesBack, [OPEN])).toEqual([...times(12, ""), "ends"]);
  });

  it("opens only once if it appears and disappears faster than openAfterMs and resolveAfterMs", () => {
    const flapping = Array.from({ length: 30 }, (_, at) => (at % 4 < 2 ? SEEN : "nothing")) as Sighting[];
    expect(look([SEEN, ...flapping]).filter((one) => one !== "")).toEqual(["opens"]);
    expect(look(flapping, [OPEN]).filter((one) => one !== "")).toEqual([]);
  });

  it("neither opens nor is resolved while its value is between the thresholds for opening and for resolving", () => {
    expect(look(times(10, NEAR))).toEqual(times(10, ""));
    expect(look(times(10, NEAR), [OPEN])).toEqual(times(10, ""));
  });

  it("neither opens nor is resolved while its checks fail", () => {
    expect(look(times(10, undefined), [OPEN])).toEqual(times(10, ""));
    expect(look([SEEN, ...times(5, undefined), SEEN])).toEqual([...times(6, ""), "opens"]);
  });
});
