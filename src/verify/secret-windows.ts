import type { Secret } from "./sender-settings.ts";

/** The texts of the secrets that are valid at a time, in their order: those without a name, or those of one. */
export type SecretsAt = (nowMs: number, name?: string) => readonly string[];

export function createSecretWindows(secrets: readonly Secret[]): SecretsAt {
  const windows = secrets.map(({ value, name, notBefore, notAfter }) => ({
    ...{ value, name },
    fromMs: notBefore === undefined ? Number.NEGATIVE_INFINITY : Date.parse(notBefore),
    toMs: notAfter === undefined ? Number.POSITIVE_INFINITY : Date.parse(notAfter),
  }));
  return (nowMs, wanted) => {
    const valid: string[] = [];
    for (const { value, name, fromMs, toMs } of windows) {
      if (name === wanted && fromMs <= nowMs && nowMs < toMs) valid.push(value);
    }
    return valid;
  };
}
