import type { Secret } from "./sender-config.ts";

interface SecretWindow extends Pick<Secret, "value" | "name"> {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The secrets of a channel with the times at which they are valid. */
export class SecretWindows {
  readonly #windows: readonly SecretWindow[];
  #last: readonly string[] = NO_SECRETS;

  constructor(secrets: readonly Secret[]) {
    this.#windows = secrets.map(({ value, name, notBefore, notAfter }) => ({
      value,
      name,
      fromMs: notBefore === undefined ? Number.NEGATIVE_INFINITY : Date.parse(notBefore),
      toMs: notAfter === undefined ? Number.POSITIVE_INFINITY : Date.parse(notAfter),
    }));
  }

  all(): readonly string[] {
    return this.#windows.map(({ value }) => value);
  }

  /**
   * Returns the secrets that are valid at a time: those named `wanted`, or the unnamed ones. While the valid unnamed secrets stay
   * the same, so does the array, because derived values are cached per array instance.
   */
  at(nowMs: number, wanted?: string): readonly string[] {
    const valid: string[] = [];
    for (const { value, name, fromMs, toMs } of this.#windows) {
      if (name === wanted && fromMs <= nowMs && nowMs < toMs) valid.push(value);
    }
    if (wanted !== undefined) return valid;
    const last = this.#last;
    if (valid.length !== last.length || valid.some((value, index) => value !== last[index]))
      this.#last = valid;
    return this.#last;
  }
}

const NO_SECRETS: readonly string[] = [];
