// Script of `/docs/reference`, which uses Swagger UI. Swagger UI needs seconds to process our whole API description, so it first gets only
// a summary per operation and loads the rest when the user opens the operation.

/** Fields of an operation that the list of operations shows. */
const HEAD = ["operationId", "summary", "tags", "deprecated", "security", "servers"];

window.addEventListener("load", () => {
  let whole = {};

  const headsOf = ({ paths, components, ...rest }) => ({
    ...rest,
    paths: mapValues(paths, (item) =>
      mapValues(item, (part) => ("operationId" in part ? pick(part, HEAD) : part)),
    ),
    components: { securitySchemes: components.securitySchemes },
  });

  const heads = () => ({
    fn: {
      resolveSubtree: async (_, path) => ({
        spec: resolve(
          whole,
          path.reduce((at, step) => at?.[step], whole),
          [],
        ),
        errors: [],
      }),
    },
    statePlugins: {
      spec: {
        wrapActions: {
          parseToJson:
            (_, { specActions, specSelectors }) =>
            (text) => {
              whole = JSON.parse(text ?? specSelectors.specStr());
              return specActions.updateJsonSpec(headsOf(whole));
            },
        },
      },
    },
  });

  const search = ({ React }) => ({
    components: {
      FilterContainer: ({ layoutSelectors, layoutActions }) =>
        React.createElement("input", {
          type: "search",
          className: "operation-filter-input wrapper",
          placeholder: "Search operations: words of their path, name or heading",
          "aria-label": "Search operations",
          value: phraseOf(layoutSelectors),
          onChange: ({ target }) => layoutActions.updateFilter(target.value),
        }),
    },
    fn: {
      opsFilter: (headings, phrase) =>
        headings
          .map((heading, tag) =>
            heading.update("operations", (all) => all.filter((one) => fits(one, tag, phrase))),
          )
          .filter((heading) => heading.get("operations").size > 0),
    },
    statePlugins: {
      layout: {
        wrapSelectors: {
          // Shows matching operations even in a collapsed group.
          isShown:
            (isShown, { layoutSelectors }) =>
            (_, thing, ...rest) =>
              (thing[0] === "operations-tag" && phraseOf(layoutSelectors) !== "") || isShown(thing, ...rest),
        },
      },
    },
  });

  /** Shows the first group of tags, and collapses each other group below its name and description. */
  const groups = ({ React }) => ({
    wrapComponents: {
      operations: (Operations) => (props) => {
        const found = props.specSelectors.taggedOperations();
        const isSearching = phraseOf(props.layoutSelectors) !== "";
        const linked = window.location.hash.split("/")[1] ?? "";
        const [first, ...others] = (whole["x-tagGroups"] ?? [])
          .map((group) => ({ ...group, found: found.filter((_, tag) => group.tags.includes(tag)) }))
          .filter((group) => group.found.size > 0);
        if (first === undefined) return React.createElement(Operations, props);
        const list = (group) =>
          React.createElement(Operations, {
            ...props,
            specSelectors: { ...props.specSelectors, taggedOperations: () => group.found },
          });
        const folded = (group) =>
          React.createElement(
            "details",
            {
              key: group.name,
              open: isSearching || group.tags.some((tag) => encodeURIComponent(tag) === linked),
            },
            React.createElement(
              "summary",
              { style: { cursor: "pointer", padding: "16px 26px" } },
              React.createElement("h2", { style: { display: "inline", marginRight: "10px" } }, group.name),
              React.createElement("span", { style: { fontSize: "14px" } }, group.description),
            ),
            list(group),
          );
        // A search may find operations of collapsed groups only.
        const isCollapsed = first.name !== whole["x-tagGroups"][0].name;
        return React.createElement(
          "div",
          { className: "tag-groups" },
          ...(isCollapsed ? [folded(first)] : [list(first)]),
          ...others.map(folded),
        );
      },
    },
  });

  window.SwaggerUIBundle({
    url: "../v1/openapi.json",
    dom_id: "#document",
    deepLinking: true,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    filter: true,
    validatorUrl: null,
    // A token that the user enters must not be stored in the browser.
    persistAuthorization: false,
    presets: [window.SwaggerUIBundle.presets.apis],
    plugins: [heads, search, groups],
  });
});

const mapValues = (object, map) =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value)]));

const pick = (object, names) =>
  Object.fromEntries(Object.entries(object).filter(([name]) => names.includes(name)));

/** Swagger UI returns `true` instead of a search text until the user types one. */
const phraseOf = (layoutSelectors) => {
  const phrase = layoutSelectors.currentFilter();
  return typeof phrase === "string" ? phrase : "";
};

/** Returns whether each search word occurs in the operation's method, path, names or group. */
function fits(one, tag, phrase) {
  const names = ["operationId", "summary"].map((name) => one.getIn(["operation", name]));
  const text = [one.get("method"), one.get("path"), ...names, tag].join(" ").toLowerCase();
  return phrase
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/**
 * Replaces references in a part of the API description with the referenced objects. A recursive reference becomes a note, because expanding
 * it would never end.
 */
function resolve(whole, part, open) {
  if (Array.isArray(part)) return part.map((one) => resolve(whole, one, open));
  if (typeof part !== "object" || part === null) return part;
  const { $ref, ...rest } = part;
  if (typeof $ref !== "string") return mapValues(part, (one) => resolve(whole, one, open));
  if (open.includes($ref)) return { description: "Recursive: see the enclosing object.", ...rest };
  const found = $ref
    .slice("#/".length)
    .split("/")
    .reduce((at, step) => at?.[step.replaceAll("~1", "/").replaceAll("~0", "~")], whole);
  return { ...resolve(whole, found, [...open, $ref]), ...rest };
}
