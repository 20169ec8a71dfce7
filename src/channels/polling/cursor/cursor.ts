import { z } from "zod";
import { err, ok, type Result } from "../../../lib/result.ts";
import type { CursorFormat } from "../../source.ts";
import { getStoredSettings } from "../../stored-settings.ts";
import { getDiscriminator } from "../discriminators/discriminators.ts";
import { validatorsSchema } from "../fetch/validators.ts";
import { compilePlan, type Plan } from "../settings/plan.ts";
import { pollingSettings } from "../settings/settings.ts";
import type { Position, PositionContext } from "./position.ts";

/** A cursor as it is stored: JSON. */
const cursorSchema = z.strictObject({
  /** The discriminator that wrote `position`. */
  by: z.string(),
  position: z.unknown(),
  validators: validatorsSchema.optional(),
  lastPollAtMs: z.number().optional(),
});

export interface PollCursor {
  readonly position: Position;
  readonly validators?: z.output<typeof validatorsSchema> | undefined;
  /** When the last poll began that came to its end; kept only where the request names it. */
  readonly lastPollAtMs?: number | undefined;
}

export function formatPollCursor({ settings }: Plan, cursor: PollCursor): string {
  const { lastPollAtMs, position, validators } = cursor;
  return JSON.stringify({
    by: settings.discriminator.by,
    position: position.save(),
    validators,
    lastPollAtMs,
  });
}

/** Where a source stands, at its beginning where `text` is undefined; the error is for the channel's owner. */
export function parsePollCursor(
  { discriminator, settings }: Plan,
  text: string | undefined,
  context: PositionContext,
): Result<PollCursor, string> {
  if (text === undefined) return ok({ position: discriminator.start(context) });
  const { by, position, ...rest } = cursorSchema.parse(JSON.parse(text));
  const restored = by === settings.discriminator.by ? discriminator.restore(position, context) : undefined;
  if (restored !== undefined) return ok({ ...rest, position: restored });
  return err(`The cursor is of other settings of the discriminator (${by}): set it, or reset it`);
}

/**
 * As `{"timestamp": "2026-01-31T09:30:00.000Z"}`, `{"sequence": "42"}`, `{"token": "…"}` or `{"seen": …}`, by the discriminator: a
 * person sets from where on items are new. What was remembered besides is forgotten then.
 */
export const pollCursorFormat: CursorFormat = {
  show(text) {
    const { by, position } = cursorSchema.parse(JSON.parse(text));
    return getDiscriminator(by).show(position);
  },
  parse(value, settings) {
    const plan = compilePlan(getStoredSettings(pollingSettings, settings));
    if (!plan.ok) return err(plan.error);
    const position = plan.value.discriminator.parse(value);
    if (!position.ok) return position;
    return ok(JSON.stringify({ by: plan.value.settings.discriminator.by, position: position.value }));
  },
};
