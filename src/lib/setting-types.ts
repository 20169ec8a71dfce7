import { isIP } from "node:net";
import { err, ok, type Result } from "./result.ts";

/** Turns a setting's text into its value, or says what the text must be; never quotes the text, which may be secret. */
export type SettingType<T> = (text: string) => Result<T, string>;

/** A TCP port; 0 lets the system choose one. */
export const portNumber: SettingType<number> = (text) => {
  if (/^tcp:\/\//.test(text)) {
    return err(
      "must be a port number; Kubernetes sets this name for a service called `inlet`: set `enableServiceLinks: false` on the pod",
    );
  }
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535
    ? ok(Number(text))
    : err("must be a port number from 0 to 65535");
};

export const wholeNumber =
  (min: number, max: number): SettingType<number> =>
  (text) =>
    /^\d{1,10}$/.test(text) && Number(text) >= min && Number(text) <= max
      ? ok(Number(text))
      : err(`must be a whole number from ${min} to ${max}`);

/** `0` or `1`. */
export const flag: SettingType<boolean> = (text) =>
  text === "0" || text === "1" ? ok(text === "1") : err("must be 0 or 1");

export const nonEmptyText: SettingType<string> = (text) => ok(text);

export const matching =
  (pattern: RegExp, problem: string): SettingType<string> =>
  (text) =>
    pattern.test(text) ? ok(text) : err(problem);

/** What fits into a bearer header (RFC 6750, section 2.1) and is long enough not to be guessed. */
export const bearerToken =
  (minLength: number): SettingType<string> =>
  (text) =>
    text.length >= minLength && /^[A-Za-z0-9._~+/-]+=*$/.test(text)
      ? ok(text)
      : err(`must be at least ${minLength} characters of A-Z a-z 0-9 . _ ~ + / -`);

export const oneOf =
  <T extends string>(values: readonly T[]): SettingType<T> =>
  (text) => {
    const value = values.find((candidate) => candidate === text);
    return value === undefined ? err(`must be one of ${values.join(", ")}`) : ok(value);
  };

/** A comma-separated list without repetitions, in the order given. */
export const listOf =
  <T>(type: SettingType<T>): SettingType<readonly T[]> =>
  (text) => {
    const values = new Set<T>();
    for (const part of text.split(",").map((piece) => piece.trim())) {
      if (part === "") return err("must be a comma-separated list without empty parts");
      const result = type(part);
      if (!result.ok) return err(`each part ${result.error}`);
      values.add(result.value);
    }
    return ok([...values]);
  };

/** The word `none` for an empty list, else a list. */
export const noneOr =
  <T>(list: SettingType<readonly T[]>): SettingType<readonly T[]> =>
  (text) =>
    text === "none" ? ok([]) : list(text);

/** `10.0.0.0/8`, `fd00::/8`; an address alone stands for itself. */
export const network: SettingType<string> = (text) => {
  const [address = "", prefix, ...rest] = text.split("/");
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  const length = prefix === undefined ? bits : Number(prefix);
  const valid = bits > 0 && rest.length === 0 && /^\d{1,3}$/.test(String(prefix ?? bits)) && length <= bits;
  return valid ? ok(`${address}/${length}`) : err("must be a network such as 10.0.0.0/8 or fd00::/8");
};

/** An absolute URL of one of these schemes; credentials, query and fragment only where `anyPart`. */
export const url =
  (schemes: readonly string[], anyPart = false): SettingType<string> =>
  (text) => {
    const parsed = URL.parse(text);
    const plain = parsed && !parsed.username && !parsed.password && !parsed.search && !parsed.hash;
    const hasPlace = parsed?.protocol === "unix:" ? parsed.pathname.length > 1 : parsed?.host;
    if (!parsed || !schemes.includes(parsed.protocol) || !hasPlace || !(anyPart || plain)) {
      const rest = anyPart ? "" : " without credentials, query or fragment";
      return err(
        `must be a URL that begins with ${schemes.map((scheme) => `${scheme}//`).join(" or ")}${rest}`,
      );
    }
    return ok(anyPart ? text : text.replace(/\/+$/, ""));
  };

/** The name of an OpenID Connect issuer: a URL that is compared as it is spelled, a slash at its end included. */
export const issuer: SettingType<string> = (text) => {
  const parsed = url(["https:", "http:"])(text);
  return parsed.ok ? ok(text) : parsed;
};
