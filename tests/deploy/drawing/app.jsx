// Draws the recorded dashboards with Grafana's own components.
import React from 'react';
import { createRoot } from 'react-dom/client';
import {
  BigValue, BigValueColorMode, BigValueGraphMode, BigValueJustifyMode, GlobalStyles, PanelChrome,
  PanelContextProvider, TimeSeries,
} from '@grafana/ui';
import { createTheme, dateTime, EventBusSrv, FieldType, getDisplayProcessor, getFieldDisplayValues, ThemeContext, toDataFrame } from '@grafana/data';

const theme = createTheme({ colors: { mode: 'dark' } });
const COLUMN = 60, ROW = 38, GAP = 8;

function legendOf(format, labels, title) {
  return format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => labels[name] ?? '').trim() || title;
}

function framesOf({ panel, series }) {
  const frames = [];
  series.forEach((found, index) => {
    const target = panel.targets[index];
    for (const one of found) {
      frames.push(toDataFrame({
        refId: target.refId,
        fields: [
          { name: 'Time', type: FieldType.time, values: one.values.map(v => v[0] * 1000) },
          { name: 'Value', type: FieldType.number, values: one.values.map(v => Number(v[1])),
            config: { displayNameFromDS: legendOf(target.legendFormat, one.metric, panel.title) } },
        ],
      }));
    }
  });
  // What Grafana's registry of options would do: the panel's defaults, and a colour for each series.
  let index = 0;
  for (const frame of frames) {
    for (const field of frame.fields) {
      const stat = panel.type === 'stat';
      if (field.type === FieldType.number) {
        field.config = { color: { mode: stat ? 'thresholds' : 'palette-classic' }, ...panel.fieldConfig.defaults, ...field.config };
        field.state = { seriesIndex: index++ };
      }
      field.display = getDisplayProcessor({ field, theme, timeZone: 'utc' });
    }
  }
  const overridden = frames;
  return overridden;
}

function Body({ entry, width, height, range }) {
  const { panel } = entry;
  const frames = framesOf(entry);
  if (!frames.length) { return <div>No data</div>; }
  if (panel.type === 'stat') {
    const values = getFieldDisplayValues({ data: frames, fieldConfig: panel.fieldConfig, reduceOptions: { calcs: ['lastNotNull'], values: false }, replaceVariables: x => x, theme, timeZone: 'utc' });
    const each = Math.floor(width / values.length);
    return <div style={{ display: 'flex' }}>{values.map((v, i) =>
      <BigValue key={i} theme={theme} width={each} height={height} value={values.length > 1 ? v.display : { ...v.display, title: undefined }} colorMode={BigValueColorMode.Value} graphMode={BigValueGraphMode.None} justifyMode={BigValueJustifyMode.Auto} count={values.length} />)}</div>;
  }
  return <TimeSeries frames={frames} structureRev={1} timeRange={range} timeZone="utc" width={width} height={height} legend={panel.options.legend} options={panel.options} />;
}

function Panel({ entry, range }) {
  const { panel } = entry;
  const at = panel.gridPos;
  if (panel.type === 'row') {
    return <div style={{ position: 'absolute', left: 0, top: at.y * ROW + 8, fontWeight: 500 }}>⌄ {panel.title}</div>;
  }
  const width = at.w * COLUMN - GAP, height = at.h * ROW - GAP;
  return <div style={{ position: 'absolute', left: at.x * COLUMN, top: at.y * ROW, width, height }}>
    <PanelChrome title={panel.title} description={panel.description} width={width} height={height}>
      {(w, h) => <Body entry={entry} width={w} height={h} range={range} />}
    </PanelChrome>
  </div>;
}

window.draw = (entries, title) => {
  const times = entries.flatMap(e => e.series.flat().flatMap(s => s.values.map(v => v[0] * 1000)));
  const from = dateTime(Math.min(...times)), to = dateTime(Math.max(...times));
  const range = { from, to, raw: { from, to } };
  const bottom = Math.max(...entries.map(e => e.panel.gridPos.y + e.panel.gridPos.h));
  const context = { eventsScope: 'picture', eventBus: new EventBusSrv(), canAddAnnotations: () => false };
  window.size = [24 * COLUMN + 32, bottom * ROW + 64];
  createRoot(document.getElementById('root')).render(
    <ThemeContext.Provider value={theme}><GlobalStyles isExtensionSidebarOpen={false} />
      <PanelContextProvider value={context}>
        <div style={{ background: theme.colors.background.canvas, padding: 16, width: window.size[0], height: window.size[1], boxSizing: 'border-box' }}>
          <h4 style={{ marginBottom: 8 }}>{title}</h4>
          <div style={{ position: 'relative' }}>{entries.map((e, i) => <Panel key={i} entry={e} range={range} />)}</div>
        </div>
      </PanelContextProvider></ThemeContext.Provider>);
};
