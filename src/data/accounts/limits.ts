/** What one organization may use, by name; each names its unit. */
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

/** Undefined: there is none. */
export type Limits = Readonly<Record<LimitName, number | undefined>>;

/** For organizations that have none of their own. */
export interface LimitDefaults {
  /** The operator's organization has none but where one keeps Redis from being filled. */
  readonly operators: Limits;
  readonly others: Readonly<Record<LimitName, number>>;
}

/** The limits in force for an organization. */
export function limitsInForce(
  { operators, others }: LimitDefaults,
  own: Readonly<Record<LimitName, number | null>> | undefined,
  isOperators: boolean,
): Limits {
  const defaults = isOperators ? operators : others;
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, own?.[name] ?? defaults[name]])) as Limits;
}
