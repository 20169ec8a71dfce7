/** Time ranges that end now, by their name in the address. The address stays valid, because it says how long ago the range starts. */
export const TIME_PRESETS = {
  "15m": { label: "15 min", ms: 15 * 60_000 },
  "1h": { label: "1 h", ms: 3_600_000 },
  "24h": { label: "24 h", ms: 24 * 3_600_000 },
  "7d": { label: "7 d", ms: 7 * 24 * 3_600_000 },
} as const;

export type TimePreset = keyof typeof TIME_PRESETS;

export const isTimePreset = (text: string | undefined): text is TimePreset =>
  text !== undefined && Object.hasOwn(TIME_PRESETS, text);

/** Replaces the preset `last` by the start of its range. Other values stay as they are. */
export function resolvePreset(
  { last, ...values }: Readonly<Record<string, string>>,
  nowMs: number,
): Readonly<Record<string, string>> {
  if (!isTimePreset(last)) return values;
  return { ...values, from: new Date(nowMs - TIME_PRESETS[last].ms).toISOString() };
}
