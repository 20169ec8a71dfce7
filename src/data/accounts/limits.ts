/** Each name contains the unit of its limit. */
export const LIMIT_NAMES = [
  "topicBytes",
  "quarantineBytes",
  "hookRequestsPerSecond",
  "sourceDeliveriesPerSecond",
  "keyFetches",
  "bodyBytes",
  "schemaCompileMsPerMinute",
  "rowsPerResource",
] as const;
export type LimitName = (typeof LIMIT_NAMES)[number];

/** Values by limit. `undefined` means unlimited. */
export type Limits = Readonly<Record<LimitName, number | undefined>>;

export interface LimitDefaults {
  /** Defaults for the operator's own organization. It has only the limits that keep Redis from filling up. */
  readonly operators: Limits;
  readonly others: Readonly<Record<LimitName, number>>;
}

/** Returns the active limits of an organization. A limit that is not set in `own` has its default value. */
export function limitsInForce(
  { operators, others }: LimitDefaults,
  own: Readonly<Record<LimitName, number | null>> | undefined,
  isOperators: boolean,
): Limits {
  const defaults = isOperators ? operators : others;
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, own?.[name] ?? defaults[name]])) as Limits;
}
