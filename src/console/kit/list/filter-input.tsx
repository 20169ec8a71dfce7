import { useEffect, useRef, useState } from "preact/hooks";
import { LocalTimeInput } from "../form/local-time.tsx";
import { Button } from "../layout/button.tsx";
import { Icon } from "../layout/icons.tsx";
import { UntrustedText } from "../text/untrusted-text.tsx";
import { visibleText } from "../text/visible.ts";
import type { FilterField } from "./filter-field.ts";

const TYPING_MS = 350;

interface InputProps {
  readonly field: FilterField;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Called to open the dialog of a filter that is searched. */
  readonly onSearch: () => void;
}

/** Input of a filter. */
export function FilterInput({ field, value, onChange, onSearch }: InputProps) {
  switch (field.kind) {
    case "text":
      return <TypedInput value={value} onChange={onChange} placeholder={field.placeholder ?? ""} />;
    case "choice":
      return (
        <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">all</option>
          {value !== "" && !field.options.some((option) => option.value === value) && (
            <option value={value}>{visibleText(value)}</option>
          )}
          {field.options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      );
    case "search":
      return (
        <Button look="picked" aria-haspopup="dialog" onClick={onSearch}>
          <span class="grow">
            {value === "" ? "all" : <UntrustedText max={60}>{field.labelOf(value)}</UntrustedText>}
          </span>
          <Icon name="search" />
        </Button>
      );
    case "time":
      return <LocalTimeInput label={field.label} value={value} onChange={onChange} />;
    default:
      return field satisfies never;
  }
}

/** Text filter. Reports a change after the user stops typing, because each change sends a request. */
function TypedInput({
  value,
  onChange,
  placeholder,
}: Pick<InputProps, "value" | "onChange"> & { readonly placeholder: string }) {
  const [text, setText] = useState(value);
  const reported = useRef(value);
  // Other filters may change while the user types.
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => {
    if (value !== reported.current) setText(value);
    reported.current = value;
  }, [value]);
  useEffect(() => {
    if (text === reported.current) return undefined;
    const timer = setTimeout(() => {
      reported.current = text;
      latest.current(text);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input
      type="search"
      value={text}
      placeholder={placeholder}
      spellcheck={false}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  );
}
