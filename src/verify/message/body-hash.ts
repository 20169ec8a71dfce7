import { createHash, timingSafeEqual } from "node:crypto";
import type { Result } from "../../lib/result.ts";
import type { Refusal } from "../verifier.ts";
import { compileSource, type RequestView } from "./request-view.ts";
import type { SignedMessageSettings } from "./settings.ts";
import { decode, refuse } from "./signature.ts";

type BodyHashSettings = NonNullable<SignedMessageSettings["bodyHash"]>;

/** Compiles the check that the body is the one whose hash was signed. */
export function checkBodyHash({ source, algorithm, encoding, prefix = "" }: BodyHashSettings) {
  const read = compileSource(source);
  return (view: RequestView): Result<never, Refusal> | undefined => {
    const text = read(view);
    if (text === undefined) return refuse("missing", "the hash of the body is missing or repeated");
    const said = decode(text, prefix, encoding);
    const actual = createHash(algorithm).update(view.request.body).digest();
    if (said !== undefined && said.length === actual.length && timingSafeEqual(said, actual))
      return undefined;
    return refuse("mismatch", "the body is not the one whose hash is signed");
  };
}
