import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "../layout/button.tsx";
import { Icon } from "../layout/icons.tsx";
import { useShortcut } from "../layout/shortcuts.tsx";
import { Time } from "../text/time.tsx";
import { UntrustedText } from "../text/untrusted-text.tsx";
import { useAddress } from "./address.ts";
import type { FilterField } from "./filter-field.ts";
import { FilterInput } from "./filter-input.tsx";
import { SavedViewsBar } from "./saved-views-bar.tsx";
import { isTimePreset, resolvePreset, TIME_PRESETS, type TimePreset } from "./time-presets.ts";

export type { FilterField } from "./filter-field.ts";

/** Filter with a choice of values. */
export const choiceFilter = <Value extends string>(
  name: string,
  label: string,
  values: readonly Value[],
  labelOf: (value: Value) => string = (value) => value,
): FilterField => ({
  name,
  label,
  kind: "choice",
  options: values.map((value) => ({ value, label: labelOf(value) })),
});

export const TIME_FILTERS: readonly FilterField[] = [
  { name: "from", label: "From", kind: "time" },
  { name: "to", label: "To", kind: "time" },
];

export const namesOf = (fields: readonly FilterField[]): readonly string[] => fields.map(({ name }) => name);

export type FilterValues = Readonly<Record<string, string>>;

/**
 * Hook that keeps filters in the query string of the URL, so that a filtered list can be shared. Lists with the filter `from` also have the
 * filter `last`, a time range that ends now.
 *
 * @param turn number that changes with each refresh, which moves the time range
 */
export function useFilters(
  names: readonly string[],
  turn = 0,
): {
  readonly values: FilterValues;
  /** The values with `from` in place of `last`. The time stays the same until the filters or `turn` change. */
  readonly resolved: FilterValues;
  readonly set: (next: FilterValues) => void;
} {
  const { query, go } = useAddress();
  const known = names.includes("from") ? [...names, "last"] : names;
  const values = Object.fromEntries(
    known.flatMap((name) => (query[name] === undefined || query[name] === "" ? [] : [[name, query[name]]])),
  );
  const unset = Object.fromEntries(known.map((name) => [name, undefined]));
  const resolved = useMemo(() => resolvePreset(values, Date.now()), [JSON.stringify(values), turn]);
  return { values, resolved, set: (next) => go({ ...unset, ...next }, { replace: true }) };
}

interface Props {
  readonly fields: readonly FilterField[];
  readonly values: FilterValues;
  readonly onChange: (next: FilterValues) => void;
}

/**
 * Line of filters above a list: time ranges, a button that shows the inputs, and a chip for each active filter. A single filter needs no
 * button. The `/` key moves the focus to the first input.
 */
export function FilterBar({ fields, values, onChange }: Props) {
  const bar = useRef<HTMLFormElement>(null);
  const panelId = useId();
  const [isOpen, setOpen] = useState(false);
  const [clears, setClears] = useState(0);
  const [searched, setSearched] = useState<string>();
  const focusesFirst = useRef(false);
  const hasPanel = fields.length > 1;
  const focusFirst = (): void =>
    bar.current?.querySelector<HTMLElement>(".filter input, .filter select, .filter button")?.focus();
  useShortcut({
    keys: "/",
    description: "Filter",
    run() {
      setOpen(true);
      focusesFirst.current = true;
      focusFirst();
    },
  });
  useEffect(() => {
    if (isOpen && focusesFirst.current) focusFirst();
    focusesFirst.current = false;
  }, [isOpen]);
  const set = (name: string, value: string): void => {
    const { last, ...others } = values;
    const isTime = name === "from" || name === "to";
    onChange({ ...others, ...(last !== undefined && !isTime && { last }), [name]: value });
  };
  const clear = (next: FilterValues): void => {
    setClears(clears + 1);
    onChange(next);
    // The focused button is removed with its filter.
    bar.current?.querySelector<HTMLElement>("[aria-expanded]")?.focus();
  };
  const search = fields.find(({ name }) => name === searched);
  const isSet = Object.keys(values).length > 0;
  const hasTime = fields.some(({ name }) => name === "from");
  const active = hasPanel ? fields.filter(({ name }) => values[name] !== undefined) : [];
  return (
    <div class="filter-line">
      <form ref={bar} role="search" onSubmit={(event) => event.preventDefault()}>
        {hasTime && (
          <TimePresets value={values.last} onChange={(last) => onChange(withPreset(values, last))} />
        )}
        {hasPanel && (
          <Button
            aria-expanded={isOpen}
            aria-controls={isOpen ? panelId : undefined}
            onClick={() => {
              focusesFirst.current = !isOpen;
              setOpen(!isOpen);
            }}
          >
            <Icon name="filter" /> Filter
          </Button>
        )}
        {active.map((field) => (
          <Chip
            key={field.name}
            field={field}
            value={values[field.name] ?? ""}
            onRemove={() => {
              const { [field.name]: _, ...others } = values;
              clear(others);
            }}
          />
        ))}
        {isSet && (
          <Button look="quiet" onClick={() => clear({})}>
            Clear
          </Button>
        )}
        {(isOpen || !hasPanel) && (
          // The key drops texts that the user typed but that are not reported yet.
          <div key={clears} class="filters" id={panelId}>
            {fields.map((field) => (
              // biome-ignore lint/a11y/noLabelWithoutControl: its input is one of four
              <label key={field.name} class={values[field.name] === undefined ? "filter" : "filter set"}>
                <span>{field.label}</span>
                <FilterInput
                  field={field}
                  value={values[field.name] ?? ""}
                  onChange={(value) => set(field.name, value)}
                  onSearch={() => setSearched(field.name)}
                />
              </label>
            ))}
          </div>
        )}
      </form>
      {search?.kind === "search" && (
        <search.Dialog
          onPick={(value) => {
            setSearched(undefined);
            set(search.name, value);
          }}
          onClose={() => setSearched(undefined)}
        />
      )}
      <SavedViewsBar isFiltered={isSet} />
    </div>
  );
}

interface ChipProps {
  readonly field: FilterField;
  readonly value: string;
  readonly onRemove: () => void;
}

/** Active filter with a button that removes it. */
const Chip = ({ field, value, onRemove }: ChipProps) => (
  <span class="chip">
    <span class="chip-text">
      <span class="faint">{field.label}</span> <ChipValue field={field} value={value} />
    </span>
    <Button look="quiet icon-only" aria-label={`Remove the filter ${field.label}`} onClick={onRemove}>
      <Icon name="close" />
    </Button>
  </span>
);

function ChipValue({ field, value }: Pick<ChipProps, "field" | "value">) {
  if (field.kind === "time") return <Time at={value} />;
  if (field.kind === "search") return <UntrustedText max={60}>{field.labelOf(value)}</UntrustedText>;
  const option = field.kind === "choice" ? field.options.find((one) => one.value === value) : undefined;
  return <UntrustedText max={60}>{option?.label ?? value}</UntrustedText>;
}

/** Sets or removes a time preset. A preset replaces other times. */
function withPreset(values: FilterValues, last: TimePreset | undefined): FilterValues {
  const { from: _, to: __, last: ___, ...others } = values;
  return last === undefined ? others : { ...others, last };
}

interface TimePresetsProps {
  readonly value: string | undefined;
  readonly onChange: (last: TimePreset | undefined) => void;
}

const TimePresets = ({ value, onChange }: TimePresetsProps) => (
  <fieldset class="segments" aria-label="Time range">
    {Object.entries(TIME_PRESETS).map(([name, { label }]) => (
      <button
        key={name}
        type="button"
        aria-pressed={value === name}
        onClick={() => onChange(value === name || !isTimePreset(name) ? undefined : name)}
      >
        {label}
      </button>
    ))}
  </fieldset>
);
