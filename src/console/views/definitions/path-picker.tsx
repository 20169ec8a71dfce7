import { useMemo } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";
import { Select } from "../../kit/form/field.tsx";
import { UntrustedCode, UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { listFields, MAX_FIELDS, type Pickable } from "./delivery-fields.ts";
import { PATH_FIELDS, type PathField, type PathTarget } from "./path-target.ts";

interface Props {
  /** Kind of the channel, which decides how a path can read the headers. */
  readonly kind: Schemas["Channel"]["kind"];
  readonly delivery: Pickable;
  /** Path to the items of a delivery. `undefined` if the delivery is a single item. */
  readonly itemsPath: string | undefined;
  readonly target: PathTarget;
  readonly onTarget: (field: PathField) => void;
  readonly onPick: (path: string) => void;
}

/** Lists the fields of a delivery. A click on a field sets the path of the chosen setting. */
export function PathPicker({ kind, delivery, itemsPath, target, onTarget, onPick }: Props) {
  const { body, headers } = delivery;
  const rows = useMemo(
    () => listFields({ body, headers }, { kind, itemsPath }),
    [body, headers, kind, itemsPath],
  );
  if (rows.length === 0) return null;
  return (
    <section class="path-picker stack" aria-label="Fields of the delivery">
      <Select
        label="Click a field to use its path as"
        value={target.field}
        options={PATH_FIELDS.map((field) => ({
          value: field,
          label: `${field} of definition ${target.index + 1}`,
        }))}
        onChange={(field) => onTarget(field as PathField)}
      />
      <ul>
        {rows.slice(0, MAX_FIELDS).map(({ path, name, depth, value }) => (
          <li key={path} style={{ paddingInlineStart: `${depth * 16}px` }}>
            <button type="button" title={path} onClick={() => onPick(path)}>
              <UntrustedText max={100}>{name}</UntrustedText>
            </button>
            {value !== undefined && (
              <UntrustedCode class="soft" max={120}>
                {value}
              </UntrustedCode>
            )}
          </li>
        ))}
      </ul>
      {rows.length > MAX_FIELDS && <p class="faint">Later fields are not listed. Type their paths.</p>}
    </section>
  );
}
