import { useId, useState } from "preact/hooks";
import type { ErrorDetail } from "../../api/api-error.ts";
import { FieldHelp } from "./help.tsx";
import { formatLabel } from "./labels.ts";
import type { Field, Resolve, Schema } from "./schema.ts";

export interface Context {
  readonly resolve: Resolve;
  readonly details: readonly ErrorDetail[];
  readonly without: readonly string[];
  readonly choices: Choices;
  /** Paths of optional fields that are shown first. */
  readonly first: readonly string[];
  /** Paths of text fields that can be turned off. Their value is then `null`. */
  readonly nullable: readonly string[];
  /** Whether the form changes an existing entity. No field is required then. */
  readonly isChange: boolean;
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

/**
 * Allowed values of fields, keyed by field path, for values that the schema cannot list, such as ids. For a field whose schema
 * lists its values, they are the labels.
 */
export type Choices = Readonly<Record<string, readonly Choice[]>>;

/** Label of a value that the schema lists. Without a label in `choices`, it is the value itself. */
export const labelOf = ({ choices }: Context, path: string, value: string): string =>
  choices[path]?.find((one) => one.value === value)?.label ?? value;

export interface InputProps {
  readonly context: Context;
  /** Path of the field, such as `a.b[0]`. Error responses of the API use the same format. */
  readonly path: string;
  /** Name of the field. Empty for the whole form, which has no frame. */
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

export type FieldProps<K extends Field["is"]> = InputProps & { readonly field: Extract<Field, { is: K }> };

interface LabeledFieldProps extends InputProps {
  readonly field: Field;
  /** Shown below the input. */
  readonly below?: preact.ComponentChild;
  /** Renders the input element with the attributes that connect it to its label, help and errors. */
  readonly children: (attributes: {
    readonly id: string;
    readonly "aria-describedby": string;
    readonly "aria-invalid": boolean;
    readonly "data-path": string;
  }) => preact.ComponentChild;
}

/** Errors of the API for a field. */
export const FieldErrors = ({ context, path }: Pick<InputProps, "context" | "path">) => (
  <>
    {context.details
      .filter((one) => one.path === path)
      .map(({ message }) => (
        <p key={message} class="field-error">
          {message}
        </p>
      ))}
  </>
);

function LabeledField({ name, isRequired, path, context, field, below, children }: LabeledFieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label class="field-name" htmlFor={id}>
        {field.title ?? formatLabel(name)}
        {!isRequired && !context.isChange && <span class="faint"> optional</span>}
      </label>
      {children({
        id,
        "aria-describedby": `${id}-help`,
        "aria-invalid": context.details.some((one) => one.path === path),
        "data-path": path,
      })}
      {below}
      <div id={`${id}-help`}>
        <FieldErrors context={context} path={path} />
        <FieldHelp>{field.description}</FieldHelp>
      </div>
    </div>
  );
}

export function TextInput(props: FieldProps<"text">) {
  const { field, value, onChange, isRequired } = props;
  const shown = typeof value === "string" ? value : "";
  const set = (text: string): void => onChange(text === "" ? undefined : text);
  const fallback = typeof field.fallback === "string" ? field.fallback : "";
  const hint = fallback || (field.isTime ? "2030-01-31T09:30:00Z" : (field.example ?? ""));
  const isOff = value === null && props.context.nullable.includes(props.path);
  return (
    <LabeledField {...props} below={<TurnOff {...props} isOff={isOff} />}>
      {(attributes) => {
        const all = {
          ...attributes,
          required: isRequired && !props.context.isChange,
          disabled: isOff,
          spellcheck: false,
          value: shown,
          onInput: (event: { readonly currentTarget: { readonly value: string } }) =>
            set(event.currentTarget.value),
        };
        const choices = props.context.choices[props.path];
        if (choices)
          return (
            <select {...all} onInput={undefined} onChange={(event) => set(event.currentTarget.value)}>
              <option value="">{isRequired ? "choose …" : fallback || "none"}</option>
              {choices.map((one) => (
                <option key={one.value} value={one.value}>
                  {one.label}
                </option>
              ))}
            </select>
          );
        if (field.isSecret)
          return (
            <input
              type="password"
              autoComplete="new-password"
              placeholder={props.context.isChange ? "unchanged" : ""}
              {...all}
            />
          );
        if (field.isLong) return <textarea {...all} />;
        return <input type="text" autoComplete="off" placeholder={isOff ? "turned off" : hint} {...all} />;
      }}
    </LabeledField>
  );
}

/** Checkbox of a field that can be turned off. Without it, an empty field has the default of the API. */
function TurnOff({ isOff, ...props }: InputProps & { readonly field: Field; readonly isOff: boolean }) {
  const { name, path, context, field, onChange } = props;
  if (!context.nullable.includes(path)) return null;
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isOff}
        onChange={(event) => onChange(event.currentTarget.checked ? null : undefined)}
      />
      <span>
        Turn off<span class="sr-only"> {field.title ?? formatLabel(name)}</span>
      </span>
    </label>
  );
}

export function NumberInput(props: FieldProps<"number">) {
  const { field, value, onChange, isRequired } = props;
  return (
    <LabeledField {...props}>
      {(attributes) => (
        <input
          {...attributes}
          type="number"
          inputMode="numeric"
          step={field.isWhole ? 1 : "any"}
          min={field.min}
          max={field.max}
          required={isRequired && !props.context.isChange}
          value={typeof value === "number" ? value : ""}
          placeholder={typeof field.fallback === "number" ? String(field.fallback) : ""}
          onInput={({ currentTarget: { value: text } }) => onChange(text === "" ? undefined : Number(text))}
        />
      )}
    </LabeledField>
  );
}

export function FlagInput(props: FieldProps<"flag">) {
  const { field, name, value, onChange, path, context } = props;
  const id = useId();
  return (
    <div class="field">
      <label class="check">
        <input
          type="checkbox"
          aria-describedby={id}
          checked={typeof value === "boolean" ? value : field.fallback === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
        <span>{field.title ?? formatLabel(name)}</span>
      </label>
      <div id={id}>
        <FieldErrors context={context} path={path} />
        <FieldHelp>{field.description}</FieldHelp>
      </div>
    </div>
  );
}

export function ChoiceInput(props: FieldProps<"choice">) {
  const { field, value, onChange, isRequired, context, path } = props;
  const at = field.options.indexOf(value);
  const label = (option: unknown): string => labelOf(context, path, String(option));
  const fallback =
    field.fallback === undefined || field.fallback === null ? "none" : `${label(field.fallback)} (default)`;
  return (
    <LabeledField {...props}>
      {(attributes) => (
        <select
          {...attributes}
          required={isRequired && !context.isChange}
          value={at < 0 ? "" : String(at)}
          onChange={({ currentTarget: { value: chosen } }) =>
            onChange(chosen === "" ? undefined : field.options[Number(chosen)])
          }
        >
          <option value="">{isRequired ? "choose …" : fallback}</option>
          {field.options.map((option, index) => (
            <option key={String(option)} value={String(index)}>
              {label(option)}
            </option>
          ))}
        </select>
      )}
    </LabeledField>
  );
}

export function JsonInput(props: FieldProps<"json">) {
  const { value, onChange } = props;
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const [isBroken, setBroken] = useState(false);
  return (
    <LabeledField {...props}>
      {(attributes) => (
        <>
          <textarea
            {...attributes}
            spellcheck={false}
            aria-invalid={attributes["aria-invalid"] || isBroken}
            placeholder="JSON"
            value={text}
            onInput={({ currentTarget: { value: typed } }) => {
              setText(typed);
              try {
                onChange(typed.trim() === "" ? undefined : JSON.parse(typed));
                setBroken(false);
              } catch {
                setBroken(true);
              }
            }}
          />
          {isBroken && <p class="field-error">must be JSON; the last valid value is used</p>}
        </>
      )}
    </LabeledField>
  );
}
