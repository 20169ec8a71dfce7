import { type DestinationStream, type Logger, pino } from "pino";

export type Log = Logger;

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

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
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      censor: "[redacted]",
    },
  };
  return options.destination ? pino(settings, options.destination) : pino(settings);
}
