import { hash } from "node:crypto";
import { z } from "zod";
import { parseJson } from "../../../event/parse-json.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import { getStoredConfig } from "../../../lib/stored-config.ts";
import type { CursorFormat } from "../../source.ts";
import { pollingConfigSchema } from "../config/config.ts";
import { compilePlan, type Plan } from "../config/plan.ts";
import { getDiscriminator } from "../discriminators/discriminators.ts";
import { validatorsSchema } from "../fetch/validators.ts";
import type { Position, PositionContext } from "./position.ts";
import type { ReconcileState } from "./reconciler.ts";

const cursorSchema = z.strictObject({
  /** Name of the strategy for detecting new items that wrote `position`. */
  by: z.string(),
  /** `undefined` if the source has no position yet. */
  position: z.unknown().optional(),
  validators: validatorsSchema.optional(),
  lastPollAtMs: z.number().optional(),
  reconciled: z.strictObject({ settings: z.string(), isProven: z.boolean() }).optional(),
  /** Set when items contradicted `order`. The source publishes nothing until its settings differ from the ones with this hash. */
  contradiction: z.strictObject({ settings: z.string(), message: z.string() }).optional(),
});

export interface PollCursor {
  readonly position: Position;
  readonly validators?: z.output<typeof validatorsSchema> | undefined;
  /** Start of the last completed poll, in ms since the Unix epoch. Stored only if the request contains the placeholder `{{lastPollAt}}`. */
  readonly lastPollAtMs?: number | undefined;
  readonly reconciled?: ReconcileState | undefined;
  /** Message of the contradiction that stops the source with its current settings. */
  readonly contradiction?: string | undefined;
}

export function formatPollCursor({ config }: Plan, cursor: PollCursor): string {
  const { lastPollAtMs, position, reconciled, validators } = cursor;
  return JSON.stringify({
    by: config.discriminator.by,
    position: position.save(),
    validators,
    lastPollAtMs,
    reconciled,
  });
}

/** Stores the result of a poll that only compared. The position stays, and the next request is unconditional. */
export function markCompared({ config }: Plan, text: string | undefined, reconciled: ReconcileState): string {
  const before = text === undefined ? { by: config.discriminator.by } : (parseJson(text) as object);
  return JSON.stringify({ ...before, validators: undefined, reconciled });
}

/** Returns whether no poll has stored a position yet. */
export const hasNoPosition = (text: string | undefined): boolean =>
  text === undefined || cursorSchema.parse(parseJson(text)).position === undefined;

/**
 * Adds to a cursor that the items contradict the current settings.
 * @param text the cursor before the contradiction; `undefined` if there was none
 */
export function markContradiction({ config }: Plan, text: string | undefined, message: string): string {
  const before = text === undefined ? { by: config.discriminator.by } : (parseJson(text) as object);
  return JSON.stringify({ ...before, contradiction: { settings: hashSettings(config), message } });
}

const hashSettings = (config: Plan["config"]): string =>
  hash("sha256", JSON.stringify(config), "base64url").slice(0, 22);

/**
 * Restores a read position from a stored cursor. If `text` is `undefined`, creates a new position. Error messages are shown to the
 * channel's owner.
 */
export function parsePollCursor(
  { discriminator, config }: Plan,
  text: string | undefined,
  context: PositionContext,
): Result<PollCursor, string> {
  if (text === undefined) return ok({ position: discriminator.start(context) });
  const { by, contradiction, position, ...rest } = cursorSchema.parse(parseJson(text));
  const restored =
    position === undefined
      ? discriminator.start(context)
      : by === config.discriminator.by
        ? discriminator.restore(position, context)
        : undefined;
  if (restored !== undefined) {
    const isActive = contradiction !== undefined && contradiction.settings === hashSettings(config);
    return ok({ ...rest, position: restored, contradiction: isActive ? contradiction.message : undefined });
  }
  return err(`The cursor belongs to other discriminator settings (${by}). Set or reset the cursor`);
}

/**
 * The cursor as the API shows it. Its form depends on the discriminator: `{"timestamp": "2026-01-31T09:30:00.000Z"}`, `{"sequence": "42"}`,
 * `{"token": "…"}` or `{"seen": …}`. Setting a cursor defines the point after which items count as new. It discards everything else that
 * the source remembers.
 */
export const pollCursorFormat: CursorFormat = {
  show(text) {
    const { by, position } = cursorSchema.parse(parseJson(text));
    return position === undefined ? null : getDiscriminator(by).show(position);
  },
  parse(value, config) {
    const plan = compilePlan(getStoredConfig(pollingConfigSchema, config));
    if (!plan.ok) return err(plan.error);
    const position = plan.value.discriminator.parse(value);
    if (!position.ok) return position;
    return ok(JSON.stringify({ by: plan.value.config.discriminator.by, position: position.value }));
  },
};
