import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { Empty } from "../../kit/feedback/states.tsx";
import { TextArea } from "../../kit/form/field.tsx";
import { Section } from "../../kit/layout/page.tsx";
import { PagedTable } from "../../kit/list/loaded-table.tsx";
import type { Column } from "../../kit/list/table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { formatCount } from "../../kit/text/numbers.ts";
import { hasPermission } from "../../session/session.ts";

type Install = Schemas["Install"];

const countOf = (count: number | null) => (count === null ? "unknown" : formatCount(count));

const COLUMNS: readonly Column<Install>[] = [
  { title: "App", width: "minmax(0, 2fr)", cell: ({ appId }) => appId },
  {
    title: "Organization",
    width: "minmax(0, 2fr)",
    priority: 2,
    cell: ({ organizationId }) => organizationId,
  },
  {
    title: "Route keys",
    width: "minmax(0, 2fr)",
    cell: ({ routeKeys }) => routeKeys.map(({ key }) => key).join(", ") || <span class="faint">none</span>,
  },
  {
    title: "Events (24 h)",
    width: "7rem",
    priority: 2,
    align: "end",
    cell: ({ eventsLastDay }) => countOf(eventsLastDay),
  },
  {
    title: "Quarantined",
    width: "7rem",
    priority: 2,
    align: "end",
    cell: ({ quarantined }) => countOf(quarantined),
  },
];

/** Table of the installs of a blueprint. A click on an install opens a dialog that sets its route keys. */
export function Installs({ blueprintId }: { readonly blueprintId: string }) {
  const path = `/blueprints/${blueprintId}/installs`;
  const pages = usePages<Install>(path);
  const [open, setOpen] = useState<Install>();
  const canWrite = hasPermission("blueprints.write");
  return (
    <Section title="Installs">
      <PagedTable
        label="Installs"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ appId }) => appId}
        {...(canWrite && { onOpen: setOpen })}
        maxRows={8}
        of="installs"
        lines={2}
        empty={
          <Empty title="No installs yet">
            Install the blueprint for a customer, then set its route keys.
          </Empty>
        }
      />
      {open && (
        <KeysDialog
          path={`${path}/${open.appId}/route-keys`}
          install={open}
          onClose={() => setOpen(undefined)}
          onSaved={pages.reload}
        />
      )}
    </Section>
  );
}

interface KeysProps {
  readonly path: string;
  readonly install: Install;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

function KeysDialog({ path, install: { appId, routeKeys }, onClose, onSaved }: KeysProps) {
  const [text, setText] = useState(routeKeys.map(({ key }) => key).join("\n"));
  const body = { keys: text.split("\n").filter((line) => line !== "") };
  return (
    <Confirm
      title={`Route keys of ${appId}`}
      verb="Save"
      call={{ method: "PUT", path, body }}
      done="Saved. Items with these keys go to the install within two seconds."
      onDone={onSaved}
      onClose={onClose}
    >
      <TextArea
        label="Route keys, one per line"
        help="Items with one of these keys go to this install and to no other."
        rows={4}
        value={text}
        onChange={setText}
      />
    </Confirm>
  );
}
