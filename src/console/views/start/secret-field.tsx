import { TextField } from "../../kit/form/field.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { CopyButton } from "../../kit/text/copy.tsx";

export interface GivenSecret {
  readonly value: string;
  /** The last generated value, before the user edits it. `undefined` if the user enters a secret of the sender. */
  readonly generated: string | undefined;
}

export const NO_SECRET: GivenSecret = { value: "", generated: undefined };

/** Whether the secret is exactly the generated one. A user can also replace the text of a generated secret by one of the sender. */
export const isGenerated = ({ value, generated }: GivenSecret): boolean => value === generated;

interface Props {
  readonly label: string;
  readonly hint: string;
  readonly secret: GivenSecret;
  readonly onChange: (secret: GivenSecret) => void;
  readonly generate: () => GivenSecret;
}

/** Input for a secret of the sender, or for a generated one, which is visible, so that the user can give it to the sender. */
export function SecretField({ label, hint, secret, onChange, generate }: Props) {
  const { value, generated } = secret;
  const isVisible = generated !== undefined;
  return (
    <>
      <TextField
        label={label}
        help={`${hint} Inlet stores it encrypted and never shows it again.`}
        type={isVisible ? "text" : "password"}
        required
        value={value}
        onChange={(text) => onChange({ value: text, generated })}
      />
      <div class="row">
        <Button onClick={() => onChange(generate())}>Generate a secret</Button>
        {isVisible && <CopyButton text={value} what="secret" />}
      </div>
    </>
  );
}

const SECRET_BYTES = 32;

/** Returns a random secret: a prefix and 256 bits in base64. */
export function generateSecret(prefix = ""): GivenSecret {
  const generated =
    prefix + btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(SECRET_BYTES))));
  return { value: generated, generated };
}
