// Draws one algorithm's part of the API, or all of it: the tabs are links.
"use strict";

const algorithm = new URLSearchParams(location.search).get("algorithm") ?? "all";

window.reference = SwaggerUIBundle({
  url: `/docs/openapi/${encodeURIComponent(algorithm)}.json`,
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  syntaxHighlight: { activated: true, theme: "agate" },
  validatorUrl: null,
});
