import { type DestinationStream, type LevelWithSilent, type Logger, pino } from "pino";

export type Log = Logger;
export type LogDestination = DestinationStream;

export type LogLevel = LevelWithSilent;

/** Whatever goes by these names is a credential and never reaches a line, at the top or one level down. */
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

/** One JSON line per thing, on standard output, unless another destination is given. */
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
 * Of an error what it is, says and comes from, causes included. Whatever else hangs on it stays out: a driver puts there the
 * command that failed, with the password or the event in it.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { type, message, stack, code } = pino.stdSerializers.err(error);
  const parts = error instanceof AggregateError ? error.errors.map(describeError) : undefined;
  return { type, message, stack, code, errors: parts };
}
