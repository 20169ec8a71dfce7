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
  /** Default limits of the organization that runs the gateway. Only limits that protect Redis from filling up are set. */
  readonly operators: Limits;
  readonly others: Readonly<Record<LimitName, number>>;
}

/** Returns the limits of an organization: its own limits, and defaults for all others. */
export function limitsInForce(
  { operators, others }: LimitDefaults,
  own: Readonly<Record<LimitName, number | null>> | undefined,
  isOperators: boolean,
): Limits {
  const defaults = isOperators ? operators : others;
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, own?.[name] ?? defaults[name]])) as Limits;
}
