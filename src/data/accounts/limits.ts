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
/** For every organization that has none of its own. */
export type LimitDefaults = Readonly<Record<LimitName, number>>;

/**
 * The operator's organization has none of these by default. The others keep a gateway itself from being overrun by
 * any sender.
 */
const NOT_FOR_THE_OPERATOR: ReadonlySet<LimitName> = new Set([
  "topicBytes",
  "schemaCompileMsPerMinute",
  "rowsPerResource",
]);

/** The limits in force for an organization. */
export function limitsInForce(
  defaults: LimitDefaults,
  own: Readonly<Record<LimitName, number | null>> | undefined,
  isOperators: boolean,
): Limits {
  const inForce = (name: LimitName): number | undefined =>
    own?.[name] ?? (isOperators && NOT_FOR_THE_OPERATOR.has(name) ? undefined : defaults[name]);
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, inForce(name)])) as Record<
    LimitName,
    number | undefined
  >;
}
