import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";

interface Props {
  readonly presets: readonly Schemas["Preset"][];
  /** Called with the name of the chosen provider preset, or with `other` for any other sender. */
  readonly onChoose: (preset: string) => void;
}

export function Providers({ presets, onChoose }: Props) {
  const [words, setWords] = useState("");
  const found = presets.filter(({ title, preset }) =>
    words
      .toLowerCase()
      .split(/\s+/)
      .every((word) => `${title} ${preset}`.toLowerCase().includes(word)),
  );
  return (
    <section class="stack">
      <label class="field">
        <span class="field-name">Sender</span>
        <input
          type="search"
          value={words}
          placeholder={`Search ${presets.length} providers`}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </label>
      <ul class="providers">
        {found.map(({ preset, title, description }) => (
          <li key={preset}>
            <button type="button" class="provider" title={description} onClick={() => onChoose(preset)}>
              <span class="provider-initial" aria-hidden="true">
                {title.slice(0, 1)}
              </span>
              {title}
            </button>
          </li>
        ))}
        <li>
          <button type="button" class="provider" onClick={() => onChoose("other")}>
            <span class="provider-initial" aria-hidden="true">
              +
            </span>
            Any other sender
          </button>
        </li>
      </ul>
      <p class="count-line" role="status">
        {found.length} of {presets.length} providers
      </p>
    </section>
  );
}
