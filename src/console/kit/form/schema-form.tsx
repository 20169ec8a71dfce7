import { useId, useState } from "preact/hooks";
import type { ErrorDetail } from "../../api/api-error.ts";
import { Button } from "../layout/button.tsx";
import { Icon } from "../layout/icons.tsx";
import { ErrorFold } from "./error-fold.tsx";
import { FieldHelp } from "./help.tsx";
import {
  ChoiceInput,
  type Choices,
  type Context,
  FieldErrors,
  type FieldProps,
  FlagInput,
  type InputProps,
  JsonInput,
  labelOf,
  NumberInput,
  TextInput,
} from "./inputs.tsx";
import { appendPath, formatLabel } from "./labels.ts";
import { type Field, isRecord, type ObjectField, parseField, type Resolve, type Schema } from "./schema.ts";
import { createInitialValue, getFixedFields, isDefault, pickKnownFields } from "./values.ts";

interface Props {
  readonly schema: Schema;
  readonly resolve?: Resolve;
  /** `undefined` when the form is empty. */
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  /** Details of an error response. The form shows each detail at the field to which its path points. */
  readonly details?: readonly ErrorDetail[];
  /** Paths of fields that the form does not show, such as `config.url`. Their values stay unchanged. */
  readonly without?: readonly string[];
  readonly choices?: Choices;
  readonly first?: readonly string[];
  readonly nullable?: readonly string[];
  readonly isChange?: boolean;
}

const NO_REFERENCES: Resolve = () => undefined;

/** Form generated from a JSON Schema of the API. Empty fields are omitted from the request, so that the API's defaults apply. */
export function SchemaForm({
  schema,
  resolve = NO_REFERENCES,
  value,
  onChange,
  details = [],
  without = [],
  choices = {},
  first = [],
  nullable = [],
  isChange = false,
}: Props) {
  const context: Context = { resolve, details, without, choices, first, nullable, isChange };
  return (
    <div class="stack">
      <FieldInput
        context={context}
        path=""
        schema={schema}
        name=""
        isRequired
        value={value}
        onChange={onChange}
      />
    </div>
  );
}

function FieldInput(props: InputProps) {
  const field = parseField(props.schema, props.context.resolve);
  const group = (children: preact.ComponentChild) => (
    <Group {...props} field={field}>
      {children}
    </Group>
  );
  switch (field.is) {
    case "fixed":
      return null;
    case "text":
      return <TextInput {...props} field={field} />;
    case "number":
      return <NumberInput {...props} field={field} />;
    case "flag":
      return <FlagInput {...props} field={field} />;
    case "choice":
      return <ChoiceInput {...props} field={field} />;
    case "object":
      return group(<Properties {...props} field={field} />);
    case "list":
      return group(<ListInput {...props} field={field} />);
    case "record":
      return group(<RecordInput {...props} field={field} />);
    case "variants":
      return group(<VariantsInput {...props} field={field} />);
    case "json":
      return <JsonInput {...props} field={field} />;
    default:
      return field satisfies never;
  }
}

function Group({
  name,
  path,
  context,
  field,
  children,
}: InputProps & { readonly field: Field; readonly children: preact.ComponentChildren }) {
  if (name === "") return <>{children}</>;
  return (
    <fieldset class="group">
      <legend>{field.title ?? formatLabel(name)}</legend>
      <FieldHelp>{field.description}</FieldHelp>
      <FieldErrors context={context} path={path} />
      {children}
    </fieldset>
  );
}

/** Shows required fields and fields with a value. The user can expand the others. */
function Properties(props: InputProps & { readonly field: Pick<ObjectField, "properties"> }) {
  const { field, value, onChange, path, context } = props;
  const given = isRecord(value) ? value : {};
  const shown = field.properties.filter(({ name }) => !context.without.includes(appendPath(path, name)));
  // Paths of fields that had a value when the form opened. They stay in place even if the user clears them.
  const [opened] = useState(() =>
    shown
      .filter(({ name, schema }) => !isDefault(schema, given[name], context.resolve))
      .map(({ name }) => name),
  );
  const isFirst = ({ name, isRequired }: (typeof shown)[number]): boolean =>
    isRequired ||
    opened.includes(name) ||
    shown.length <= MAX_SHOWN ||
    context.first.includes(appendPath(path, name));
  const inputs = (list: typeof shown) =>
    list.map(({ name, isRequired, schema }) => (
      <FieldInput
        key={name}
        context={context}
        path={appendPath(path, name)}
        name={name}
        schema={schema}
        // Fields of an optional object are only required once the object has a value.
        isRequired={isRequired && (props.isRequired || value !== undefined)}
        value={given[name]}
        onChange={(next) => {
          const { [name]: _, ...others } = given;
          const all = next === undefined ? others : { ...given, [name]: next };
          onChange(path !== "" && !props.isRequired && Object.keys(all).length === 0 ? undefined : all);
        }}
      />
    ));
  const others = shown.filter((one) => !isFirst(one));
  const hasError = others.some(({ name }) =>
    context.details.some((one) => one.path.startsWith(appendPath(path, name))),
  );
  return (
    <>
      {inputs(shown.filter(isFirst))}
      {others.length > 0 && (
        <ErrorFold
          class="more"
          summary={`${others.length} more ${others.length === 1 ? "setting" : "settings"}`}
          hasError={hasError}
        >
          <div class="stack">{inputs(others)}</div>
        </ErrorFold>
      )}
    </>
  );
}

/** Maximum number of fields that a form shows without hiding some of them. */
const MAX_SHOWN = 4;

function ListInput(props: FieldProps<"list">) {
  const { field, value, onChange, path, context, name } = props;
  const items = Array.isArray(value) ? (value as readonly unknown[]) : [];
  const set = (next: readonly unknown[]): void =>
    onChange(next.length === 0 && !props.isRequired ? undefined : next);
  const choices = context.choices[path];
  if (choices) {
    return (
      <div class="checks">
        {choices.map(({ value: one, label }) => (
          <label key={one} class="check">
            <input
              type="checkbox"
              checked={items.includes(one)}
              onChange={(event) =>
                set(event.currentTarget.checked ? [...items, one] : items.filter((item) => item !== one))
              }
            />
            <span>{label}</span>
          </label>
        ))}
      </div>
    );
  }
  return (
    <>
      {items.map((item, index) => (
        <Entry
          key={index}
          title={`${formatLabel(name)} ${index + 1}`}
          onRemove={() => set(items.toSpliced(index, 1))}
        >
          <FieldInput
            context={context}
            path={appendPath(path, index)}
            name={`${index + 1}`}
            schema={field.items}
            isRequired
            value={item}
            onChange={(next) => set(items.with(index, next))}
          />
        </Entry>
      ))}
      <div>
        <Button onClick={() => set([...items, createInitialValue(field.items, context.resolve)])}>Add</Button>
      </div>
    </>
  );
}

interface EntryProps {
  readonly title: string;
  readonly onRemove: () => void;
  readonly children: preact.ComponentChild;
}

/** Entry of a list or record, with a button that removes it. */
const Entry = ({ title, onRemove, children }: EntryProps) => (
  <div class="item">
    {children}
    <Button look="quiet icon-only" aria-label={`Remove ${title}`} onClick={onRemove}>
      <Icon name="close" />
    </Button>
  </div>
);

function RecordInput(props: FieldProps<"record">) {
  const { field, value, onChange, path, context } = props;
  const entries = Object.entries(isRecord(value) ? value : {});
  const [typed, setTyped] = useState("");
  const set = (next: readonly (readonly [string, unknown])[]): void =>
    onChange(next.length === 0 && !props.isRequired ? undefined : Object.fromEntries(next));
  const add = (): void => {
    if (typed === "" || entries.some(([key]) => key === typed)) return;
    set([...entries, [typed, createInitialValue(field.values, context.resolve)]]);
    setTyped("");
  };
  return (
    <>
      {entries.map(([key, one], index) => (
        <Entry key={key} title={key} onRemove={() => set(entries.toSpliced(index, 1))}>
          <FieldInput
            context={context}
            path={appendPath(path, key)}
            name={key}
            schema={field.values}
            isRequired
            value={one}
            onChange={(next) => set(entries.with(index, [key, next]))}
          />
        </Entry>
      ))}
      <div class="item field">
        <input
          type="text"
          aria-label="Name of a new entry"
          placeholder="name"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <Button onClick={add}>Add</Button>
      </div>
    </>
  );
}

function VariantsInput(props: FieldProps<"variants">) {
  const { field, value, onChange, path, context } = props;
  const given = isRecord(value) ? value : {};
  const fallback = isRecord(field.fallback) ? field.fallback[field.by] : undefined;
  const chosen = field.variants.find(({ name }) => name === String(given[field.by] ?? ""));
  const id = useId();
  const isLeftOut = context.without.includes(appendPath(path, field.by));
  return (
    <>
      {!isLeftOut && (
        <div class="field">
          <label class="field-name" htmlFor={id}>
            {formatLabel(field.by)}
          </label>
          <select
            id={id}
            required={props.isRequired}
            value={chosen?.name ?? ""}
            onChange={({ currentTarget: { value: name } }) => {
              const variant = field.variants.find((one) => one.name === name);
              onChange(
                variant && {
                  ...pickKnownFields(given, variant.schema),
                  ...getFixedFields(variant.schema, context.resolve),
                },
              );
            }}
          >
            <option value="">{fallback === undefined ? "choose …" : `${String(fallback)} (default)`}</option>
            {field.variants.map(({ name }) => (
              <option key={name} value={name}>
                {labelOf(context, appendPath(path, field.by), name)}
              </option>
            ))}
          </select>
        </div>
      )}
      {chosen && (
        <Chosen key={chosen.name} {...props} schema={chosen.schema} shownDescription={field.description} />
      )}
    </>
  );
}

function Chosen({
  shownDescription,
  ...props
}: InputProps & { readonly shownDescription: string | undefined }) {
  const field = parseField(props.schema, props.context.resolve);
  if (field.is !== "object") return null;
  return (
    <>
      {field.description !== shownDescription && <FieldHelp>{field.description}</FieldHelp>}
      <Properties {...props} isRequired field={field} />
    </>
  );
}
