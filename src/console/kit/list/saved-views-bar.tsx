import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { caller } from "../../session/session.ts";
import { Dialog } from "../feedback/dialog.tsx";
import { TextField } from "../form/field.tsx";
import { Form } from "../form/form.tsx";
import { Button } from "../layout/button.tsx";
import { Icon } from "../layout/icons.tsx";
import { UntrustedText } from "../text/untrusted-text.tsx";
import { readSavedViews, removeView, saveView } from "./saved-views.ts";

/** Links to the saved views of the current page, and a button that saves the current filters. */
export function SavedViewsBar({ isFiltered }: { readonly isFiltered: boolean }) {
  const { path, url } = useLocation();
  const [isNaming, setNaming] = useState(false);
  const organizationId = caller.value.organization.id;
  const views = readSavedViews(organizationId)
    .filter(({ href }) => href.split("?")[0] === path)
    .toSorted((a, b) => a.name.localeCompare(b.name));
  const isSaved = views.some(({ href }) => href === url);
  if (views.length === 0 && !isFiltered) return null;
  return (
    <nav class="saved-views" aria-label="Saved views">
      {views.map(({ name, href }) => (
        <span key={href} class="saved-view">
          <a href={href} aria-current={href === url ? "page" : undefined}>
            <UntrustedText max={60}>{name}</UntrustedText>
          </a>
          <Button
            look="quiet icon-only"
            aria-label={`Delete the view ${name}`}
            onClick={() => removeView(organizationId, href)}
          >
            <Icon name="close" />
          </Button>
        </span>
      ))}
      {isFiltered && !isSaved && (
        <Button look="quiet" onClick={() => setNaming(true)}>
          Save view
        </Button>
      )}
      {isNaming && (
        <NameDialog
          onClose={() => setNaming(false)}
          onSave={(name) => {
            saveView(organizationId, { name, href: url });
            setNaming(false);
          }}
        />
      )}
    </nav>
  );
}

interface NameDialogProps {
  readonly onSave: (name: string) => void;
  readonly onClose: () => void;
}

function NameDialog({ onSave, onClose }: NameDialogProps) {
  const [name, setName] = useState("");
  return (
    <Dialog title="Save view" onClose={onClose}>
      <Form onSubmit={() => onSave(name)}>
        <TextField
          label="Name of the view"
          autofocus
          required
          maxLength={60}
          value={name}
          onChange={setName}
        />
        <p class="faint">
          This browser stores the view. Its address works for everyone in your organization.
        </p>
        <div class="row end">
          <Button look="primary" type="submit" disabled={name.trim() === ""}>
            Save
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
