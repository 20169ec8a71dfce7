import type { ComponentChildren } from "preact";
import type { Choice } from "./inputs.tsx";

interface FieldProps {
  readonly label: ComponentChildren;
  readonly isOptional?: boolean | undefined;
  readonly help?: ComponentChildren;
  /** Error of the value. `undefined` if it is valid. */
  readonly error?: string | undefined;
}

/** Label of the input in `children`, with a text that explains the input. */
export const Field = (props: FieldProps & { readonly children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noLabelWithoutControl: the input is a child
  <label class="field">
    <span class="field-name">
      {props.label}
      {props.isOptional && <span class="faint"> optional</span>}
    </span>
    {props.children}
    {props.error !== undefined && <span class="field-error">{props.error}</span>}
    {props.help && <span class="field-help">{props.help}</span>}
  </label>
);

interface InputProps extends FieldProps {
  readonly value: string | number;
  readonly onChange: (value: string) => void;
  readonly required?: boolean;
  readonly placeholder?: string;
}

interface TextProps extends InputProps {
  readonly type?: "text" | "url" | "number" | "password" | "search";
  readonly min?: number;
  readonly max?: number;
  readonly pattern?: string;
  readonly name?: string;
  readonly maxLength?: number;
  readonly autofocus?: boolean;
  /** Id of a `datalist` with suggestions. */
  readonly list?: string;
}

export const TextField = ({ label, isOptional, help, error, onChange, ...input }: TextProps) => (
  <Field label={label} isOptional={isOptional} help={help} error={error}>
    <input
      type="text"
      autoComplete="off"
      spellcheck={false}
      aria-invalid={error !== undefined}
      // The JSX types of an input depend on its type, which is not known here.
      {...(input as object)}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  </Field>
);

export const TextArea = ({
  label,
  isOptional,
  help,
  error,
  onChange,
  ...input
}: InputProps & { readonly rows?: number }) => (
  <Field label={label} isOptional={isOptional} help={help} error={error}>
    <textarea
      spellcheck={false}
      aria-invalid={error !== undefined}
      {...input}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  </Field>
);

interface SelectProps extends Omit<InputProps, "error" | "isOptional"> {
  readonly options: readonly Choice[];
}

export const Select = ({ label, help, onChange, options, ...select }: SelectProps) => (
  <Field label={label} help={help}>
    <select {...select} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  </Field>
);

/** Returns the lines of a text without surrounding spaces. Omits empty lines. */
export const toLines = (text: string): readonly string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
