import { z } from "zod";
import { UnavailableError } from "../../lib/errors.ts";
import { defineScheme, reject, type Verdict, type VerificationScheme, type Verifier } from "../verifier.ts";

/**
 * Creates the scheme `anyOf`, which accepts a delivery if at least one of several schemes accepts it.
 *
 * @param schemes the schemes that can be combined
 */
export function createAnyOf(
  schemes: readonly [VerificationScheme, ...VerificationScheme[]],
): VerificationScheme {
  const [first, ...others] = schemes;
  const configSchema = z
    .strictObject({
      scheme: z
        .literal("anyOf")
        .describe("Accepts a delivery if at least one of several schemes verifies it."),
      of: z
        .array(z.discriminatedUnion("scheme", [first.configSchema, ...others.map((one) => one.configSchema)]))
        .min(2)
        .max(4)
        .describe(
          "Verification schemes to try, in this order and with the same secrets. The combination is only as strong as its weakest scheme.",
        ),
    })
    .describe("Verifies deliveries with several alternative schemes.");
  const findSchemeFor = (options: { readonly scheme?: unknown }): VerificationScheme => {
    const found = schemes.find(({ scheme }) => scheme === options.scheme);
    if (found === undefined) throw new Error(`unknown verification scheme ${options.scheme}`);
    return found;
  };
  return defineScheme({
    scheme: "anyOf",
    configSchema,
    needsSecret: ({ of }) => of.every((options) => findSchemeFor(options).needsSecret(options)),
    findWrongSecret: ({ of }, secret) => {
      const wrong = of.map((options) => findSchemeFor(options).findWrongSecret(options, secret));
      return wrong.every((message) => message !== undefined) ? wrong[0] : undefined;
    },
    findQueryGap({ of }) {
      const gaps = of.map((options) => findSchemeFor(options).findQueryGap(options));
      return gaps.find((gap) => gap?.isForgeable) ?? (gaps.includes(undefined) ? undefined : gaps[0]);
    },
    covers: ({ of }, place) => of.every((options) => findSchemeFor(options).covers(options, place)),
    create({ of }) {
      const verifiers = of.map((options) => findSchemeFor(options).create(options));
      return {
        fetchesKeys: verifiers.some(({ fetchesKeys }) => fetchesKeys),
        consumedHeaders: verifiers.flatMap(({ consumedHeaders }) => consumedHeaders),
        consumedQuery: verifiers.flatMap(({ consumedQuery }) => consumedQuery),
        consumedBody: verifiers.flatMap(({ consumedBody }) => consumedBody),
        verify: (...args) => verifyFrom(verifiers, 0, args, undefined),
      };
    },
  });
}

/**
 * Tries the verifiers from `index` on. If a verifier accepts the request, unavailable verifiers do not matter.
 *
 * @throws UnavailableError if no verifier accepts the request and at least one was unavailable
 */
function verifyFrom(
  verifiers: readonly Verifier[],
  index: number,
  args: Parameters<Verifier["verify"]>,
  unavailable: UnavailableError | undefined,
): Verdict | Promise<Verdict> {
  const verifier = verifiers[index];
  if (verifier === undefined) {
    if (unavailable !== undefined) throw unavailable;
    return reject("mismatch", "no scheme of `anyOf` verifies the request");
  }
  const judge = (verdict: Verdict): Verdict | Promise<Verdict> =>
    verdict.ok ? verdict : verifyFrom(verifiers, index + 1, args, unavailable);
  const fail = (error: unknown): Verdict | Promise<Verdict> => {
    if (error instanceof UnavailableError) return verifyFrom(verifiers, index + 1, args, error);
    throw error;
  };
  let verdict: Verdict | Promise<Verdict>;
  try {
    verdict = verifier.verify(...args);
  } catch (error) {
    return fail(error);
  }
  return verdict instanceof Promise ? verdict.then(judge, fail) : judge(verdict);
}
