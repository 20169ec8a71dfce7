/** A common way of signing webhooks. */
interface Scheme {
  readonly title: string;
  /** Prefix of a generated secret. `undefined` if the scheme has no secret. */
  readonly secretPrefix: string | undefined;
  /** Usual name of the header with the signature or token. `undefined` if the scheme fixes it. */
  readonly header: string | undefined;
  /** Returns the setting `verification` of the channel. */
  readonly compose: (header: string) => object;
}

export const SCHEMES = {
  standardWebhooks: {
    title: "Standard Webhooks (webhook-signature)",
    secretPrefix: "whsec_",
    header: undefined,
    compose: () => ({ scheme: "standardWebhooks" }),
  },
  hmacHex: {
    title: "HMAC-SHA256 of the body, in hex",
    secretPrefix: "",
    header: "X-Signature",
    compose: (name) => ({ scheme: "hmac", name }),
  },
  hmacBase64: {
    title: "HMAC-SHA256 of the body, in base64",
    secretPrefix: "",
    header: "X-Signature",
    compose: (name) => ({ scheme: "hmac", name, encoding: "base64" }),
  },
  token: {
    title: "A token in a header",
    secretPrefix: "",
    header: "X-Token",
    compose: (name) => ({ scheme: "token", in: "header", name }),
  },
  bearer: {
    title: "A token in Authorization: Bearer",
    secretPrefix: "",
    header: undefined,
    compose: () => ({ scheme: "token", in: "bearer" }),
  },
  none: {
    title: "It does not sign",
    secretPrefix: undefined,
    header: undefined,
    compose: () => ({ scheme: "none" }),
  },
} as const satisfies Readonly<Record<string, Scheme>>;

export type SchemeName = keyof typeof SCHEMES;

export const findScheme = (name: SchemeName): Scheme => SCHEMES[name];
