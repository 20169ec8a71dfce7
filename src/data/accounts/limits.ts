/** Names of the limits of an organization. Each name contains its unit. */
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

/** Values by limit. `undefined` when there is no limit. */
export type Limits = Readonly<Record<LimitName, number | undefined>>;

/** Default limits of organizations. */
export interface LimitDefaults {
  /** The operator's organization has only the limits that protect Redis from filling up. */
  readonly operators: Limits;
  readonly others: Readonly<Record<LimitName, number>>;
}

/** Returns the active limits of an organization: its own value for each limit if set, otherwise the default. */
export function limitsInForce(
  { operators, others }: LimitDefaults,
  own: Readonly<Record<LimitName, number | null>> | undefined,
  isOperators: boolean,
): Limits {
  const defaults = isOperators ? operators : others;
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, own?.[name] ?? defaults[name]])) as Limits;
}
