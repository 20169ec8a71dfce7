import type { QuarantineStore } from "../../bus/quarantine/quarantine.ts";
import type { Queryable } from "../../data/database.ts";
import { pageIntakes, type TitledIntake } from "../../data/intakes/intakes.ts";
import { ofIntake } from "../../data/problems/affected-objects.ts";
import type { Sighting } from "../../data/problems/problems.ts";
import type { QuarantineReason } from "../../event/outcome.ts";
import type { Clock } from "../../lib/clock.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { formatCount, formatDuration } from "../../lib/quantities.ts";

export interface IntakeWatchDeps {
  readonly db: Queryable;
  readonly quarantine: Pick<QuarantineStore, "list">;
  readonly clock: Clock;
}

/** Deliveries, or parts of them, that all intakes hold for one reason. */
export interface Held {
  readonly count: number;
  readonly oldestSeconds: number;
}

const REASONS = ["no_install", "no_route", "over_limit", "replayed"] as const satisfies QuarantineReason[];
const NOTHING: Held = { count: 0, oldestSeconds: 0 };
const AT_ONCE = 8;

/**
 * Watches what intakes hold. The problem belongs to the owner of the blueprint and contains counts only. The organization of an install
 * whose quarantine is full has a problem of its own (`quarantine_near_limit`).
 */
export function createIntakeWatch({ db, quarantine, clock }: IntakeWatchDeps) {
  let held: ReadonlyMap<string, Held> = new Map();

  async function readHeld({ organizationId, number }: TitledIntake, reason: QuarantineReason): Promise<Held> {
    const filter = { organizationId, channelNumbers: [number], reason };
    const { records, total } = await quarantine.list(filter, { limit: 1, offset: 0 });
    const [oldest] = records;
    const ageMs = oldest === undefined ? 0 : Math.max(0, clock() - oldest.firstAtMs);
    return { count: total, oldestSeconds: Math.floor(ageMs / 1_000) };
  }

  async function find(signal: AbortSignal): Promise<readonly Sighting[]> {
    const sightings: Sighting[] = [];
    const sums = new Map<string, Held>(REASONS.map((reason) => [reason, NOTHING]));
    for await (const page of pageIntakes(db)) {
      await mapBounded(page, AT_ONCE, async (intake) => {
        signal.throwIfAborted();
        for (const reason of REASONS) {
          const found = await readHeld(intake, reason);
          sums.set(reason, add(sums.get(reason) ?? NOTHING, found));
          if (reason === "over_limit" && found.count > 0) sightings.push(toOverflow(intake, found));
        }
      });
    }
    held = sums;
    return sightings;
  }

  return {
    find,
    /** Deliveries that all intakes held at the last check, by reason. */
    held: (): ReadonlyMap<string, Held> => held,
  };
}

const add = (a: Held, b: Held): Held => ({
  count: a.count + b.count,
  oldestSeconds: Math.max(a.oldestSeconds, b.oldestSeconds),
});

const toOverflow = (intake: TitledIntake, { count, oldestSeconds }: Held): Sighting => ({
  ...ofIntake(intake),
  kind: "intake_overflow",
  severity: "error",
  figures: { heldDeliveries: count, oldestSeconds },
  message: `The intake's quarantine holds ${formatCount(count, "delivery", "deliveries")} of installs, because the quarantine of an organization is full or the validation took too long. The oldest has waited for ${formatDuration(oldestSeconds)}.`,
  suggestedAction:
    "Ask the organizations of the installs to empty their quarantine, or ask the operator for a higher limit. Inlet then publishes the deliveries. If the intake's quarantine is full too, new deliveries get 503.",
});
