import { useEffect, useRef, useState } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";
import { Dialog } from "../feedback/dialog.tsx";
import { Empty } from "../feedback/states.tsx";
import type { SearchDialogProps } from "../list/filter-field.ts";
import { PagedTable } from "../list/loaded-table.tsx";
import type { Column } from "../list/table.tsx";
import { usePages } from "../list/use-pages.ts";
import { useRested } from "../list/use-rested.ts";
import { addApp } from "./apps.tsx";
import { HealthBadge } from "./health.tsx";

export type PickedApp = Schemas["AppSummary"];

interface Props {
  readonly title: string;
  readonly onPick: (app: PickedApp) => void;
  readonly onClose: () => void;
}

const TYPING_MS = 150;
const VISIBLE_ROWS = 10;
const MAX_SEARCH_LENGTH = 255;

const COLUMNS: readonly Column<PickedApp>[] = [
  { title: "Name", cell: ({ uid }) => uid },
  { title: "Title", cell: ({ title }) => title },
  { title: "Health", width: "6rem", cell: (app) => <HealthBadge {...app} /> },
];

/**
 * Dialog that finds an app by its name or title. The API searches, so that it works with thousands of apps. Enter picks the first app, and
 * the down arrow moves to the list.
 */
export function AppPicker({ title, onPick, onClose }: Props) {
  const box = useRef<HTMLFormElement>(null);
  const [text, setText] = useState("");
  /** Whether Enter was pressed before the apps were loaded. */
  const [picksFirst, setPicksFirst] = useState(false);
  const wanted = text.trim();
  const search = useRested(wanted, TYPING_MS);
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        ref={box}
        class="app-picker"
        onSubmit={(event) => {
          event.preventDefault();
          setPicksFirst(true);
        }}
      >
        <input
          type="search"
          autofocus
          aria-label="Name or title of the app"
          placeholder="Name or title"
          autocomplete="off"
          spellcheck={false}
          maxLength={MAX_SEARCH_LENGTH}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setPicksFirst(false);
          }}
          onKeyDown={(event) => {
            if (event.key !== "ArrowDown") return;
            event.preventDefault();
            box.current?.querySelector<HTMLElement>(".table-row")?.focus();
          }}
        />
        {/* The key drops the apps of the previous search. */}
        <FoundApps
          key={search}
          search={search}
          picksFirst={picksFirst && search === wanted}
          onPick={onPick}
        />
      </form>
    </Dialog>
  );
}

/** Dialog that chooses the app of a filter. */
export const AppDialog = ({ onPick, onClose }: SearchDialogProps) => (
  <AppPicker
    title="Filter by app"
    onPick={(app) => {
      addApp(app);
      onPick(app.id);
    }}
    onClose={onClose}
  />
);

interface FoundProps extends Pick<Props, "onPick"> {
  readonly search: string;
  readonly picksFirst: boolean;
}

function FoundApps({ search, picksFirst, onPick }: FoundProps) {
  const pages = usePages<PickedApp>("/apps/summaries", { search });
  const first = pages.rowAt(0);
  useEffect(() => {
    if (picksFirst && first !== undefined) onPick(first);
  }, [picksFirst, first]);
  return (
    <PagedTable
      label="Apps"
      of="apps"
      columns={COLUMNS}
      pages={pages}
      keyOf={({ id }) => id}
      onOpen={onPick}
      maxRows={VISIBLE_ROWS}
      empty={<Empty title="No app has this in its name or title" />}
    />
  );
}
