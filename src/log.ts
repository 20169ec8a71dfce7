import { type DestinationStream, type LevelWithSilent, type Logger, pino } from "pino";

export type Log = Logger;
export type LogDestination = DestinationStream;

export type LogLevel = LevelWithSilent;

/** Names of fields with credentials. They are redacted at the top level and on the two levels below. */
const SECRET_FIELDS = [
  "authorization",
  "cookie",
  "apiKey",
  "token",
  "secret",
  "secrets",
  "password",
  "masterKey",
];

export function createLog(options: {
  readonly level: LogLevel;
  readonly destination?: DestinationStream;
}): Log {
  const settings = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: describeError },
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      censor: "[redacted]",
    },
  };
  return options.destination ? pino(settings, options.destination) : pino(settings);
}

/**
 * Returns the loggable parts of an error and its causes: type, message, stack and code. Drivers attach the failed command to other
 * properties, and it may contain a password or an event.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { type, message, stack, code } = pino.stdSerializers.err(error);
  const parts = error instanceof AggregateError ? error.errors.map(describeError) : undefined;
  // The stacks of an unavailable server show only where the program waited, and repeat with each request.
  const isUnavailable = error.name === "UnavailableError";
  return { type, message, ...(!isUnavailable && { stack }), code, errors: parts };
}
