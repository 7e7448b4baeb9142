# What a figure of matplotlib shows, as data: so that a program can draw it again, and a model can read its numbers. Of what it does
# not know, nothing is told.

import math

MAX_POINTS = 10_000


class TooMany(Exception):
    pass


def chart_of(figure):
    """A dict; None if nothing of the figure is known."""
    try:
        charts = [chart for axes in figure.axes if (chart := of_axes(axes))]
        if len(charts) < 2:
            return charts[0] if charts else None
        title = figure._suptitle.get_text() if figure._suptitle else ''
        return {'type': 'superchart', 'title': title, 'elements': charts}
    except Exception:
        # The picture is there all the same.
        return None


def of_axes(axes):
    from matplotlib.container import BarContainer
    from matplotlib.patches import Wedge

    wedges = [patch for patch in axes.patches if isinstance(patch, Wedge)]
    if wedges:
        return {'type': 'pie', 'title': axes.get_title(), 'elements': [slice_of(wedge) for wedge in wedges]}
    bars = [container for container in axes.containers if isinstance(container, BarContainer)]
    if bars:
        return {'type': 'bar', **scales(axes), 'elements': [bar for container in bars for bar in bars_of(axes, container)]}
    if boxes := boxes_of(axes):
        return {'type': 'box_and_whisker', **scales(axes), 'elements': boxes}
    if axes.lines:
        elements = [{'label': name_of(line), 'points': points(*line.get_data(orig=True))} for line in axes.lines]
        return {'type': 'line', **scales(axes), 'elements': elements}
    if axes.collections:
        elements = [
            {'label': name_of(each), 'points': [[on(axes.xaxis, x), on(axes.yaxis, y)] for x, y in bounded(each.get_offsets())]}
            for each in axes.collections
            if type(each).__name__ == 'PathCollection'
        ]
        return {'type': 'scatter', **scales(axes), 'elements': elements} if elements else None
    return None


def scales(axes):
    told = {'title': axes.get_title()}
    for name, axis in (('x', axes.xaxis), ('y', axes.yaxis)):
        label = axis.get_label_text()
        unit = label.rpartition('(')[2].rstrip(') ') if label.rstrip().endswith(')') and '(' in label else None
        told[f'{name}_label'], told[f'{name}_unit'] = label or None, unit
        told[f'{name}_scale'] = kind_of(axis) or axis.get_scale()
        told[f'{name}_ticks'] = [on(axis, place) for place in axis.get_ticklocs()]
        told[f'{name}_tick_labels'] = [label.get_text() for label in axis.get_ticklabels()]
    return told


def kind_of(axis):
    converter = type(axis.converter).__name__
    return 'categorical' if 'Category' in converter else 'datetime' if 'Date' in converter else None


def on(axis, value):
    """A place of an axis as what stands there."""
    if kind_of(axis) == 'datetime':
        from matplotlib.dates import num2date

        return num2date(value).isoformat()
    if kind_of(axis) == 'categorical' and axis.units is not None:
        names = {place: name for name, place in axis.units._mapping.items()}
        return names.get(value, plain(value))
    return plain(value)


def plain(value):
    if hasattr(value, 'isoformat'):
        return value.isoformat()
    if type(value).__name__ == 'datetime64':
        return str(value)
    value = value.item() if hasattr(value, 'item') else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def bounded(values):
    if len(values) > MAX_POINTS:
        raise TooMany()
    return values


def points(xs, ys):
    return [[plain(x), plain(y)] for x, y in zip(bounded(xs), bounded(ys))]


def name_of(artist):
    label = artist.get_label()
    return '' if str(label).startswith('_') else str(label)


def slice_of(wedge):
    return {'label': name_of(wedge), 'angle': plain(abs(wedge.theta2 - wedge.theta1)), 'radius': plain(wedge.r)}


def bars_of(axes, container):
    is_upright = container.orientation != 'horizontal'
    axis = axes.xaxis if is_upright else axes.yaxis
    names = dict(zip(axis.get_ticklocs(), (label.get_text() for label in axis.get_ticklabels())))
    for bar in bounded(container.patches):
        place = bar.get_x() + bar.get_width() / 2 if is_upright else bar.get_y() + bar.get_height() / 2
        label = next((name for at, name in names.items() if math.isclose(at, place, abs_tol=1e-9) and name), None)
        value = bar.get_height() if is_upright else bar.get_width()
        yield {'label': label or str(on(axis, place)), 'group': name_of(container), 'value': plain(value)}


def boxes_of(axes):
    """Upright ones: a box is a closed line of five corners, and what belongs to it stands at its middle."""
    lines = [(line, *(list(map(float, numbers)) for numbers in line.get_data())) for line in bounded(axes.lines) if is_number(line)]
    boxes = []
    for line, xs, ys in lines:
        if len(xs) != 5 or xs[0] != xs[4] or ys[0] != ys[4] or xs[1] != xs[2] or xs[0] != xs[3] or ys[0] != ys[1] or ys[2] != ys[3]:
            continue
        middle, first, third = (xs[0] + xs[1]) / 2, ys[0], ys[2]
        level = [y for _, x, y in lines if len(x) == 2 and y[0] == y[1] and first <= y[0] <= third and min(x) == min(xs)]
        upright = [at for _, x, y in lines if len(x) == 2 and x[0] == x[1] == middle for at in y]
        outside = [at for each, x, y in lines if each.get_linestyle() == 'None' and x and set(x) == {middle} for at in y]
        place = dict(zip(axes.get_xticks(), (label.get_text() for label in axes.get_xticklabels()))).get(middle)
        boxes.append({
            'label': place or plain(middle), 'min': min([first, *upright]), 'first_quartile': first,
            'median': level[0][0] if level else None, 'third_quartile': third, 'max': max([third, *upright]),
            'outliers': bounded(outside),
        })
    return boxes


def is_number(line):
    try:
        return all(math.isfinite(float(value)) for values in line.get_data() for value in values)
    except (TypeError, ValueError):
        return False
