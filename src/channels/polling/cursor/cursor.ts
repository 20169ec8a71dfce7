import { z } from "zod";
import { err, ok, type Result } from "../../../lib/result.ts";
import { getStoredConfig } from "../../../lib/stored-config.ts";
import type { CursorFormat } from "../../source.ts";
import { pollingConfigSchema } from "../config/config.ts";
import { compilePlan, type Plan } from "../config/plan.ts";
import { getDiscriminator } from "../discriminators/discriminators.ts";
import { validatorsSchema } from "../fetch/validators.ts";
import type { Position, PositionContext } from "./position.ts";

const cursorSchema = z.strictObject({
  /** Name of the strategy for detecting new items that wrote `position`. */
  by: z.string(),
  position: z.unknown(),
  validators: validatorsSchema.optional(),
  lastPollAtMs: z.number().optional(),
});

export interface PollCursor {
  readonly position: Position;
  readonly validators?: z.output<typeof validatorsSchema> | undefined;
  /** Start of the last completed poll, in ms since the Unix epoch. Stored only if the request contains the placeholder `{{lastPollAt}}`. */
  readonly lastPollAtMs?: number | undefined;
}

export function formatPollCursor({ config }: Plan, cursor: PollCursor): string {
  const { lastPollAtMs, position, validators } = cursor;
  return JSON.stringify({
    by: config.discriminator.by,
    position: position.save(),
    validators,
    lastPollAtMs,
  });
}

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
  const { by, position, ...rest } = cursorSchema.parse(JSON.parse(text));
  const restored = by === config.discriminator.by ? discriminator.restore(position, context) : undefined;
  if (restored !== undefined) return ok({ ...rest, position: restored });
  return err(`The cursor belongs to other discriminator settings (${by}). Set or reset the cursor`);
}

/**
 * The cursor as the API shows it. Its form depends on the discriminator: `{"timestamp": "2026-01-31T09:30:00.000Z"}`, `{"sequence": "42"}`,
 * `{"token": "…"}` or `{"seen": …}`. Setting a cursor defines the point after which items count as new. It discards everything else that
 * the source remembers.
 */
export const pollCursorFormat: CursorFormat = {
  show(text) {
    const { by, position } = cursorSchema.parse(JSON.parse(text));
    return getDiscriminator(by).show(position);
  },
  parse(value, config) {
    const plan = compilePlan(getStoredConfig(pollingConfigSchema, config));
    if (!plan.ok) return err(plan.error);
    const position = plan.value.discriminator.parse(value);
    if (!position.ok) return position;
    return ok(JSON.stringify({ by: plan.value.config.discriminator.by, position: position.value }));
  },
};
