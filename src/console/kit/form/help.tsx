/** API paths such as ` (GET /oauth-providers)`, which do not help to fill in a form. */
const API_PATHS = / \((?:GET|POST|PUT|DELETE) \/[^)]*\)/g;

/** Description of a field from the API document. Text between backticks is shown as code, without links, which would leave the form. */
export function FieldHelp({ children }: { readonly children: string | undefined }) {
  if (children === undefined) return null;
  const parts = children.replace(API_PATHS, "").split(/`([^`]+)`/);
  return (
    <p class="field-help">
      {parts.map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}
    </p>
  );
}
