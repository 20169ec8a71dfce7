import { Button } from "../../kit/layout/button.tsx";
import { CopyButton } from "../../kit/text/copy.tsx";

interface Props {
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  /** Whether the value is visible, so that the user can give it to the sender. */
  readonly isGenerated: boolean;
  readonly onChange: (value: string, isGenerated: boolean) => void;
  readonly generate: () => string;
}

/** Input for a secret of the sender, or for a generated one that the user gives to the sender. */
export function SecretField({ label, hint, value, isGenerated, onChange, generate }: Props) {
  const input = {
    required: true,
    autoComplete: "off",
    spellcheck: false,
    value,
    onInput: (event: { readonly currentTarget: { readonly value: string } }) =>
      onChange(event.currentTarget.value, isGenerated),
  };
  return (
    <>
      {/* biome-ignore lint/a11y/noLabelWithoutControl: its input is one of two */}
      <label class="field">
        <span class="field-name">{label}</span>
        {isGenerated ? <input type="text" class="mono" {...input} /> : <input type="password" {...input} />}
        <span class="field-help">{hint} Inlet stores it encrypted and never shows it again.</span>
      </label>
      <div class="row">
        <Button onClick={() => onChange(generate(), true)}>Generate a secret</Button>
        {isGenerated && <CopyButton text={value} what="secret" />}
      </div>
    </>
  );
}

const SECRET_BYTES = 32;

/** Returns a random secret: a prefix and 256 bits in base64. */
export const generateSecret = (prefix = ""): string =>
  prefix + btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(SECRET_BYTES))));
