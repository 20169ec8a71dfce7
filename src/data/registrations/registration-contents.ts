import { parseJson } from "../../event/parse-json.ts";
import type { Keyring } from "../keyring/keyring.ts";

/** Values that a provider stores in a registration. */
export interface RegistrationContents {
  /** URL to which the provider sends. It is a credential. */
  readonly address: string;
  /** Secret that verifies the deliveries. `undefined` if the provider uses none. */
  readonly secret?: string | undefined;
  /** Event types that the provider sends. `null` if the provider does not select by type. */
  readonly events: readonly string[] | null;
}

export interface SealedContents {
  /** Contents that the provider has confirmed. */
  readonly confirmed?: RegistrationContents | undefined;
  /** Contents of a request whose result is not stored yet. The provider may already use them. */
  readonly pending?: RegistrationContents | undefined;
}

/** Encryption context (AAD) that binds the contents to their registration. */
export const contentsPlace = (registrationId: string): string => `registrations/${registrationId}/contents`;

export const sealContents = (keyring: Pick<Keyring, "seal">, id: string, contents: SealedContents): string =>
  keyring.seal(JSON.stringify(contents), contentsPlace(id));

/** @throws UnavailableError if the contents are sealed under an unknown master key */
export const openContents = (
  keyring: Pick<Keyring, "open">,
  { id, sealedContents }: { readonly id: string; readonly sealedContents: string | null },
): SealedContents =>
  sealedContents === null
    ? {}
    : (parseJson(keyring.open(sealedContents, contentsPlace(id))) as SealedContents);

/** Returns the secrets that the provider may sign deliveries with. */
export const secretsIn = ({ confirmed, pending }: SealedContents): readonly string[] =>
  [confirmed?.secret, pending?.secret].filter((secret) => secret !== undefined);
